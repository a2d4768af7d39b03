#include "service/convert_internal.h"

#include <inttypes.h>
#include <math.h>

static int convert_seconds(const char *field, double seconds, int64_t default_ms, int64_t max_ms,
                           int64_t *ret_ms, struct al_err *err)
{
    double max = (double)max_ms / 1000;
    if (isnan(seconds) || seconds < 0 || seconds > max) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "quotas.%s: %g is out of range (above 0, at most %.10g; 0 means the "
                          "default, %.10g)",
                          field, isnan(seconds) ? fabs(seconds) : seconds, max,
                          (double)default_ms / 1000);
    }
    /* The millionth takes back what the multiplication may have added to a whole number. */
    int64_t ms = (int64_t)ceil(seconds * 1000 - 1e-6);
    *ret_ms = seconds == 0 ? default_ms : ms < 1 ? 1 : ms;
    return 0;
}

static int convert_number(const char *field, uint64_t value, uint64_t default_value, uint64_t max,
                          uint64_t *ret, struct al_err *err)
{
    if (value > max) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "quotas.%s: %" PRIu64 " is out of range (1 to %" PRIu64
                          "; 0 means the default, %" PRIu64 ")",
                          field, value, max, default_value);
    }
    *ret = value == 0 ? default_value : value;
    return 0;
}

static int convert_u32(const char *field, uint32_t value, uint32_t default_value, uint32_t max,
                       uint32_t *ret, struct al_err *err)
{
    uint64_t wide = 0;
    int r = convert_number(field, value, default_value, max, &wide, err);
    if (r == 0) {
        *ret = (uint32_t)wide;
    }
    return r;
}

/* A Stream's output is bounded only where it asks. */
static int convert_output(const struct convert *c, uint64_t value, uint64_t *ret)
{
    if (c->env->stream) {
        *ret = value;
        return 0;
    }
    return convert_number("output_bytes", value, c->limits->defaults.output_bytes,
                          c->limits->maxima.output_bytes, ret, c->err);
}

int convert_quotas(struct convert *c)
{
    static const Airlock__V1__Quotas absent = AIRLOCK__V1__QUOTAS__INIT;
    const Airlock__V1__Quotas *q = c->message->quotas ? c->message->quotas : &absent;
    const struct al_quotas *d = &c->limits->defaults;
    const struct al_quotas *m = &c->limits->maxima;
    struct al_quotas *ret = &c->request->spec.quotas;
    struct al_err *err = c->err;
    return convert_seconds("cpu_seconds", q->cpu_seconds, d->cpu_ms, m->cpu_ms, &ret->cpu_ms, err)
               ?: convert_seconds("wall_seconds", q->wall_seconds, d->wall_ms, m->wall_ms,
                                  &ret->wall_ms, err)
               ?: convert_u32("memory_mb", q->memory_mb, d->memory_mb, m->memory_mb,
                              &ret->memory_mb, err)
               ?: convert_u32("pids", q->pids, d->pids, m->pids, &ret->pids, err)
               ?: convert_u32("file_size_mb", q->file_size_mb, d->file_size_mb, m->file_size_mb,
                              &ret->file_size_mb, err)
               ?: convert_u32("open_files", q->open_files, d->open_files, m->open_files,
                              &ret->open_files, err)
               ?: convert_u32("disk_mb", q->disk_mb, d->disk_mb, m->disk_mb, &ret->disk_mb, err)
               ?: convert_number("artifact_bytes", q->artifact_bytes, d->artifact_bytes,
                                 m->artifact_bytes, &ret->artifact_bytes, err)
               ?: convert_output(c, q->output_bytes, &ret->output_bytes);
}
