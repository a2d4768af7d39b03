#include "tests/bench/direct.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/native/native.h"
#include "tests/bench/die.h"

void al_direct_start(struct al_direct_env *env, const char *launcher_path, const char *folder)
{
    struct al_err err = {0};
    if (al_launcher_start(launcher_path, NULL, folder, &env->launcher, &err) < 0) {
        al_bench_die("launcher: %s", err.text);
    }
    env->native = al_native_create(env->launcher);
    if (!env->native || !env->native->available) {
        al_bench_die("native is not available: %s",
                     env->native ? env->native->unavailable_reason : "out of memory");
    }
}

void al_direct_stop(struct al_direct_env *env)
{
    al_backend_destroy(env->native);
    al_launcher_destroy(env->launcher);
    *env = (struct al_direct_env){0};
}

struct al_job_spec al_direct_spec(const struct al_direct *direct)
{
    static atomic_uint serial;
    struct al_job_spec spec = {
        .tenant_id = "bench",
        .user_id = "",
        .language = al_backend_find_language(direct->env->native, direct->program->language),
        .code = {(const uint8_t *)direct->program->code, strlen(direct->program->code)},
        .workdir = "/sandbox",
        .network = AL_NETWORK_NONE,
        .quotas = AL_QUOTAS_DEFAULTS,
    };
    snprintf(spec.job_id, sizeof spec.job_id, "%08x%08x", (unsigned)getpid(),
             atomic_fetch_add(&serial, 1));
    if (!spec.language) {
        al_bench_die("native has no %s", direct->program->language);
    }
    return spec;
}

struct sink {
    struct al_sink base; /* first: append casts back */
    size_t n;
    char output[64];
};

static size_t append(struct al_sink *base, enum al_channel channel, const uint8_t *data, size_t n)
{
    struct sink *sink = (struct sink *)base;
    if (channel == AL_STDOUT && n <= sizeof sink->output - sink->n) {
        memcpy(sink->output + sink->n, data, n);
        sink->n += n;
    }
    return n;
}

void al_direct_run(void *arg, unsigned worker)
{
    static const struct al_sink_ops ops = {.append = append};
    (void)worker;
    const struct al_direct *direct = arg;
    struct al_job_spec spec = al_direct_spec(direct);
    struct sink sink = {.base.ops = &ops};
    struct al_err err = {0};
    struct al_result result;
    al_result_init(&result);
    struct al_ctl *ctl = al_ctl_create();
    if (!ctl || al_backend_run(direct->env->native, &spec, ctl, &sink.base, &result, &err) < 0) {
        al_bench_die("native: %s", ctl ? err.text : "out of memory");
    }
    al_ctl_destroy(ctl);
    if (result.status != AL_STATUS_SUCCEEDED || sink.n != strlen(AL_BENCH_OUTPUT) ||
        memcmp(sink.output, AL_BENCH_OUTPUT, sink.n) != 0)
    {
        al_bench_die("native %s: %s", direct->program->language, result.error);
    }
    al_result_finish(&result);
}
