/*
 * What a Run on the docker backend costs over the bare tool: a container with the same settings,
 * made by the same API from the same process, attached to, started, run to its end, waited for and
 * removed. Turn about, one at a time and four; then a thousand runs, four at a time, of which none
 * may fail. Exits with 1 when an aim is missed. Run by tests/support/dockerd.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/docker/body.h"
#include "backends/docker/docker.h"
#include "backends/docker/engine.h"
#include "tests/bench/contest.h"
#include "tests/bench/die.h"
#include "tests/bench/table.h"

#define RATIO_MAX      1.3
#define CALL_MS        60000
#define OUTPUT         "42\n"
#define MANY_RUNS      1000
#define MANY_AT_A_TIME 4

static const struct al_quotas quotas = {.cpu_ms = 5000,
                                        .wall_ms = 10000,
                                        .memory_mb = 256,
                                        .pids = 64,
                                        .file_size_mb = 32,
                                        .open_files = 64,
                                        .disk_mb = 64,
                                        .output_bytes = 1 << 20,
                                        .artifact_bytes = 1 << 20};

struct bench {
    struct al_docker_config config;
    struct al_engine *engine;
    struct al_backend *backend;
    const char *image;
    char folder[64];
};

static unsigned next_number(void)
{
    static _Atomic unsigned serial;
    return serial++;
}

/* --- the bare tool --- */

static void call(struct bench *b, const char *method, const char *name, const char *rest,
                 const char *body)
{
    char path[256];
    struct al_err err = {0};
    snprintf(path, sizeof path, "/containers/%s%s", name, rest);
    const struct al_engine_call c = {.method = method,
                                     .path = path,
                                     .type = body ? "application/json" : NULL,
                                     .body = body,
                                     .body_len = body ? strlen(body) : 0,
                                     .timeout_ms = CALL_MS};
    if (al_engine_do(b->engine, &c, 0, &err) < 0) {
        al_bench_die("%s %s: %s", method, path, err.text);
    }
}

/* Docker's frame of three bytes, and the end. */
static void read_output(struct al_hijack *hijack)
{
    char data[64];
    size_t n = 0;
    for (ssize_t got; n < sizeof data;) {
        got = al_hijack_read(hijack, data + n, sizeof data - n);
        if (got == 0) {
            break;
        }
        usleep(got < 0 ? 200 : 0);
        n += got > 0 ? (size_t)got : 0;
    }
    if (n != 8 + strlen(OUTPUT) || memcmp(data + 8, OUTPUT, strlen(OUTPUT)) != 0) {
        al_bench_die("the bare container prints something else");
    }
}

static void run_bare(void *arg, unsigned worker)
{
    struct bench *b = arg;
    char name[32], rest[128];
    struct al_err err = {0};
    struct al_hijack *hijack;
    (void)worker;
    snprintf(name, sizeof name, "bare-%u", next_number());
    const struct al_docker_create create = {.image = b->image,
                                            .user = b->config.user,
                                            .instance = "bench",
                                            .job_id = name,
                                            .oci_runtime = "",
                                            .entrypoint = "/bin/bash",
                                            .quotas = &quotas};
    char *body = al_docker_body_create(&create);
    char *cmd = body ? strstr(body, "\"Cmd\":[]") : NULL;
    char *with_cmd = NULL;
    if (!cmd || asprintf(&with_cmd, "%.*s\"Cmd\":[\"-c\",\"echo 42\"]%s", (int)(cmd - body), body,
                         cmd + strlen("\"Cmd\":[]")) < 0)
    {
        al_bench_die("out of memory");
    }
    snprintf(rest, sizeof rest, "create?name=%s", name);
    call(b, "POST", "", rest, with_cmd);
    snprintf(rest, sizeof rest, "/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1", name);
    if (al_hijack_open(b->engine, rest, &hijack, &err) < 0) {
        al_bench_die("%s", err.text);
    }
    call(b, "POST", name, "/start", NULL);
    read_output(hijack);
    al_hijack_close(hijack);
    call(b, "POST", name, "/wait", NULL);
    call(b, "DELETE", name, "?force=1&v=1", NULL);
    free(body);
    free(with_cmd);
}

/* --- the backend --- */

struct sink {
    struct al_sink base; /* first: append casts back */
    size_t n;
    char output[16];
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

static void run_backend(void *arg, unsigned worker)
{
    static const struct al_sink_ops ops = {.append = append};
    static const char code[] = "echo 42";
    struct bench *b = arg;
    struct sink sink = {.base.ops = &ops};
    struct al_err err = {0};
    struct al_result result;
    (void)worker;
    struct al_job_spec spec = {.tenant_id = "bench",
                               .user_id = "",
                               .language = al_backend_find_language(b->backend, "bash"),
                               .code = {(const uint8_t *)code, sizeof code - 1},
                               .workdir = "/sandbox",
                               .network = AL_NETWORK_NONE,
                               .quotas = quotas};
    snprintf(spec.job_id, sizeof spec.job_id, "%08x%08x", (unsigned)getpid(), next_number());
    struct al_ctl *ctl = al_ctl_create();
    al_result_init(&result);
    if (!ctl || al_backend_run(b->backend, &spec, ctl, &sink.base, &result, &err) < 0) {
        al_bench_die("docker: %s", err.text);
    }
    if (result.status != AL_STATUS_SUCCEEDED || sink.n != strlen(OUTPUT) ||
        memcmp(sink.output, OUTPUT, sink.n) != 0)
    {
        al_bench_die("docker: status %d: %s", result.status, result.error);
    }
    al_ctl_destroy(ctl);
    al_result_finish(&result);
}

/* --- measuring --- */

static double compare(struct bench *b, unsigned threads, unsigned rounds)
{
    struct al_contestant who[] = {
        {.name = "container by the API", .once = run_bare, .arg = b},
        {.name = "docker backend", .once = run_backend, .arg = b},
    };
    const struct al_contest contest = {.threads = threads, .rounds = rounds, .turn = threads * 4};
    al_contest_run(&contest, who, 2);
    al_table_row(&who[0], threads, NULL);
    al_table_row(&who[1], threads, &who[0]);
    double ratio = (double)al_contestant_percentile(&who[1], 0.5) /
                   (double)al_contestant_percentile(&who[0], 0.5);
    al_contestant_finish(&who[0]);
    al_contestant_finish(&who[1]);
    return ratio;
}

static void run_many(struct bench *b)
{
    struct al_contestant who = {.name = "docker backend, many", .once = run_backend, .arg = b};
    const struct al_contest contest = {.threads = MANY_AT_A_TIME, .rounds = 1, .turn = MANY_RUNS};
    al_contest_run(&contest, &who, 1);
    al_table_row(&who, MANY_AT_A_TIME, NULL);
    printf("%d runs, %d at a time: none failed, %.1f a second\n", MANY_RUNS, MANY_AT_A_TIME,
           al_contestant_per_second(&who));
    al_contestant_finish(&who);
}

static void set_up(struct bench *b, const char *init_path)
{
    struct al_err err = {0};
    const char *host = getenv("AIRLOCK_TEST_DOCKER");
    b->image = getenv("AIRLOCK_TEST_DOCKER_IMAGE");
    if (!host || !b->image) {
        al_bench_die("there is no daemon: run it by tests/support/dockerd");
    }
    al_docker_config_defaults(&b->config);
    snprintf(b->config.host, sizeof b->config.host, "%s", host);
    snprintf(b->folder, sizeof b->folder, "/tmp/airlock-bench-XXXXXX");
    if (!mkdtemp(b->folder) || al_docker_config_open(&b->config, "image bash", &err) < 0 ||
        al_docker_config_set(&b->config, "image bash", "image", false, b->image, &err) < 0 ||
        al_engine_create(&b->config, &b->engine, &err) < 0)
    {
        al_bench_die("docker: %s", err.text);
    }
    b->backend = al_docker_create(&b->config, b->folder, init_path);
    if (!b->backend || !b->backend->available) {
        al_bench_die("docker is not available: %s",
                     b->backend ? b->backend->unavailable_reason : "out of memory");
    }
}

static void tear_down(struct bench *b)
{
    char path[128];
    al_backend_destroy(b->backend);
    al_engine_destroy(b->engine);
    snprintf(path, sizeof path, "%s/docker-instance", b->folder);
    unlink(path);
    rmdir(b->folder);
}

/* docker_bench INIT [many]: with the thousand runs too. */
int main(int argc, char **argv)
{
    static struct bench b;
    if (argc < 2) {
        al_bench_die("docker_bench PATH_OF_INIT [many]");
    }
    set_up(&b, argv[1]);
    al_table_heading();
    struct al_aim aims[] = {
        {.text = "docker to a bare container, one at a time", .limit = RATIO_MAX},
        {.text = "docker to a bare container, four at a time", .limit = RATIO_MAX},
    };
    aims[0].ratio = compare(&b, 1, 10);
    aims[1].ratio = compare(&b, 4, 5);
    if (argc > 2) {
        run_many(&b);
    }
    bool met = al_table_aims(aims, 2);
    tear_down(&b);
    return met ? EXIT_SUCCESS : EXIT_FAILURE;
}
