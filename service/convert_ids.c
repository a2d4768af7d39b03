#include "service/convert_internal.h"

#include <string.h>

#include "service/quote.h"

#define ID_MAX 128

static bool is_id(const char *id)
{
    size_t len = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return len > 0 && len <= ID_MAX && id[len] == '\0';
}

static int check_id(const char *field, const char *id, struct al_err *err)
{
    if (is_id(id)) {
        return 0;
    }
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: %s is not an id (1 to %d of A-Za-z0-9._-)",
                      field, al_quote(id).text, ID_MAX);
}

int al_convert_tenant(const char *metadata, const char *tenant_id, const char **ret,
                      struct al_err *err)
{
    bool in_metadata = metadata && metadata[0] != '\0';
    bool in_request = tenant_id[0] != '\0';
    int r = in_metadata ? check_id("airlock-tenant", metadata, err) : 0;
    if (r == 0 && in_request) {
        r = check_id("tenant_id", tenant_id, err);
    }
    if (r < 0) {
        return r;
    }
    if (in_metadata && in_request && strcmp(metadata, tenant_id) != 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "tenant_id: %s differs from %s of the call's airlock-tenant metadata",
                          al_quote(tenant_id).text, al_quote(metadata).text);
    }
    *ret = in_metadata ? metadata : in_request ? tenant_id : "_default";
    return 0;
}

int al_convert_job_id(const char *field, const char *job_id, struct al_err *err)
{
    if (strlen(job_id) == AL_JOB_ID_LEN && strspn(job_id, "0123456789abcdef") == AL_JOB_ID_LEN) {
        return 0;
    }
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                      "%s: %s is not a job id (%d lower-case hexadecimal digits)", field,
                      al_quote(job_id).text, AL_JOB_ID_LEN);
}

int convert_ids(struct convert *c)
{
    struct al_job_spec *spec = &c->request->spec;
    const char *tenant = NULL;
    int r = al_convert_tenant(c->env->tenant_metadata, c->message->tenant_id, &tenant, c->err);
    if (!tenant) {
        return r;
    }
    /* The metadata belongs to the call, which may end before the job does. */
    spec->tenant_id = al_arena_strdup(c->arena, tenant);
    spec->user_id = c->message->user_id;
    if (!spec->tenant_id) {
        return convert_exhausted(c->err);
    }
    return spec->user_id[0] == '\0' ? 0 : check_id("user_id", spec->user_id, c->err);
}
