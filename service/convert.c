#include "service/convert_internal.h"

#include <math.h>
#include <string.h>

/* Beyond every age that a cache knows, and far from overflow. */
#define CACHE_AGE_MAX_S (100.0 * 365 * 24 * 3600)

int convert_exhausted(struct al_err *err)
{
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                      "the request takes more memory than one request may");
}

int convert_at_most(struct al_err *err, const char *field, size_t n, size_t max, const char *what)
{
    return n <= max ? 0
                    : al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: %zu %s, at most %zu", field, n,
                                 what, max);
}

static int convert_bytes(struct convert *c)
{
    const Airlock__V1__RunRequest *m = c->message;
    struct al_job_spec *spec = &c->request->spec;
    spec->code = (struct al_bytes){m->code.data, m->code.len};
    spec->stdin_bytes = (struct al_bytes){m->stdin.data, m->stdin.len};
    spec->stdin_open = c->env->stream;
    return convert_at_most(c->err, "code", m->code.len, c->limits->code_bytes, "bytes")
               ?: convert_at_most(c->err, "stdin", m->stdin.len, c->limits->stdin_bytes, "bytes");
}

static int check_enum(struct al_err *err, const char *field, int value, int max)
{
    return value >= 0 && value <= max
               ? 0
               : al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: %d is not a known value (0 to %d)",
                            field, value, max);
}

static int convert_modes(struct convert *c)
{
    const Airlock__V1__RunRequest *m = c->message;
    c->request->cache_mode = (enum al_cache_mode)m->cache_mode;
    return check_enum(c->err, "cache_mode", (int)m->cache_mode, AL_CACHE_REFRESH)
               ?: check_enum(c->err, "gate_mode", (int)m->gate_mode,
                             AIRLOCK__V1__GATE_MODE__GATE_MODE_WARN);
}

static int convert_cache_age(struct convert *c)
{
    double seconds = c->message->cache_max_age_seconds;
    if (!isfinite(seconds) || seconds < 0) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "cache_max_age_seconds: %g is out of range (0 or more, finite; 0 means "
                          "the server's limit)",
                          isnan(seconds) ? fabs(seconds) : seconds);
    }
    c->request->cache_max_age_ms = (int64_t)ceil(fmin(seconds, CACHE_AGE_MAX_S) * 1000 - 1e-6);
    if (seconds > 0 && c->request->cache_max_age_ms < 1) {
        c->request->cache_max_age_ms = 1;
    }
    return 0;
}

int al_convert_linger(double seconds, int64_t max_ms, int64_t *ret_ms, struct al_err *err)
{
    double max = (double)max_ms / 1000;
    if (isnan(seconds) || seconds < 0 || seconds > max) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "start.linger_seconds: %g is out of range (0 to %.10g; 0 means that the "
                          "job ends with its stream)",
                          isnan(seconds) ? fabs(seconds) : seconds, max);
    }
    *ret_ms = (int64_t)ceil(seconds * 1000 - 1e-6);
    if (seconds > 0 && *ret_ms < 1) {
        *ret_ms = 1;
    }
    return 0;
}

int al_convert_run(const struct al_convert_env *env, const Airlock__V1__RunRequest *message,
                   struct al_arena *arena, struct al_request **ret, struct al_err *err)
{
    struct al_request *request = al_arena_alloc_array(arena, 1, sizeof *request);
    if (!request) {
        return convert_exhausted(err);
    }
    request->message = message;
    struct convert c = {.env = env,
                        .limits = env->limits,
                        .message = message,
                        .arena = arena,
                        .request = request,
                        .err = err};
    int r = convert_ids(&c) ?: convert_bytes(&c) ?: convert_modes(&c) ?: convert_cache_age(&c)
                ?: convert_quotas(&c)
                ?: convert_workdir(&c)
                ?: convert_files(&c)
                ?: convert_artifacts(&c)
                ?: convert_inputs(&c)
                ?: convert_disk(&c)
                ?: convert_env(&c)
                ?: convert_metadata(&c)
                ?: convert_args(&c)
                ?: convert_egress(&c)
                ?: convert_backend(&c);
    if (r == 0) {
        *ret = request;
    }
    return r;
}
