#include <stdlib.h>
#include <string.h>

#include "backends/base/cleanup.h"
#include "service/config_keys.h"
#include "service/quote.h"

const char *al_config_section_tenant(const char *section)
{
    size_t len = sizeof AL_CONFIG_TENANT_PREFIX - 1;
    return strncmp(section, AL_CONFIG_TENANT_PREFIX, len) == 0 ? section + len : NULL;
}

struct al_config_tenant *al_config_tenant_open(struct al_config *config, const char *name,
                                               struct al_err *err)
{
    size_t len = strlen(name);
    if (len == 0 || len > AL_CONFIG_TENANT_NAME_MAX || strspn(name, AL_CONFIG_NAME_CHARS) != len) {
        al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                   "%s is not a tenant's name (here 1 to %d of A-Za-z0-9._-)", al_quote(name).text,
                   AL_CONFIG_TENANT_NAME_MAX);
        return NULL;
    }
    for (size_t i = 0; i < config->n_tenants; i++) {
        if (strcmp(config->tenants[i].name, name) == 0) {
            return &config->tenants[i];
        }
    }
    if (config->n_tenants == AL_CONFIG_TENANTS_MAX) {
        al_err_set(err, AL_ERR_INVALID_ARGUMENT, "more than %d tenants", AL_CONFIG_TENANTS_MAX);
        return NULL;
    }
    struct al_config_tenant *tenant = &config->tenants[config->n_tenants++];
    *tenant = (struct al_config_tenant){0};
    memcpy(tenant->name, name, len + 1);
    return tenant;
}

/* A request that asks for nothing must fit into the budget. */
int al_config_quota_check(const struct al_config *config, const char *path, struct al_err *err)
{
    int64_t least_ms = config->limits.defaults.cpu_ms;
    if (config->quota.cpu_ms_per_minute < least_ms) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s: [quota] cpu_seconds_per_minute is below [defaults] cpu_seconds",
                          path);
    }
    for (size_t i = 0; i < config->n_tenants; i++) {
        int64_t ms = config->tenants[i].quota.cpu_ms_per_minute;
        if (ms != 0 && ms < least_ms) {
            return al_err_set(
                err, AL_ERR_INVALID_ARGUMENT,
                "%s: [tenant %s] cpu_seconds_per_minute is below [defaults] cpu_seconds", path,
                config->tenants[i].name);
        }
    }
    return 0;
}

struct al_quota *al_config_quota_create(const struct al_config *config)
{
    size_t n = config->n_tenants;
    al_auto_free struct al_quota_override *overrides = calloc(n + 1, sizeof *overrides);
    if (!overrides) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        overrides[i].tenant = config->tenants[i].name;
        overrides[i].limits = config->tenants[i].quota;
    }
    return al_quota_create(&(struct al_quota_rules){.defaults = config->quota,
                                                    .overrides = overrides,
                                                    .n_overrides = n,
                                                    .tenants_max = config->tenants_max});
}
