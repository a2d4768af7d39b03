#include "tests/support/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/echo/echo.h"
#include "backends/launcher/client.h"
#include "backends/local/local.h"
#include "backends/native/native.h"

#define SLOW_TIMES 6

static struct al_launcher *launcher;
static struct al_backend *backends[AL_TEST_BACKENDS];
static char dir[] = "/tmp/airlock-test-XXXXXX";
#define RANDOM_PART (sizeof dir - sizeof "XXXXXX")

static const char config_text[] = "[local]\nallow_unsafe = yes\n";
static const char slow_text[] = "[cells]\nprepared = 2\nprestarted = 1\n";

static void remove_dir(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/airlock.conf", dir);
    unlink(path);
    rmdir(dir);
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "test set-up: %s: %s\n", what, why);
    remove_dir();
    exit(1);
}

void al_test_start_with(const char *config_more)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* as airlockd does */
    struct al_err err = {0};
    char config[64];
    const char *path = getenv("AIRLOCK_LAUNCHER");
    if (!path) {
        path = "backends/launcher/airlock-launcher"; /* in the test's runfiles */
    }
    memcpy(dir + RANDOM_PART, "XXXXXX", 6);
    if (!mkdtemp(dir)) {
        fail("mkdtemp", dir);
    }
    snprintf(config, sizeof config, "%s/airlock.conf", dir);
    FILE *f = fopen(config, "we");
    if (!f || fputs(config_text, f) < 0 || fputs(config_more, f) < 0 || fclose(f) != 0) {
        fail(config, "cannot be written");
    }
    if (al_launcher_start(path, config, dir, &launcher, &err) < 0) {
        fail("launcher", err.text);
    }
    backends[0] = al_echo_create();
    backends[1] = al_local_create(launcher);
    backends[2] = al_native_create(launcher);
}

void al_test_start(void)
{
    al_test_start_with(al_test_is_slow() ? slow_text : "");
    for (size_t i = 0; i < AL_TEST_BACKENDS; i++) {
        if (!backends[i] || !backends[i]->available) {
            fail(backends[i] ? backends[i]->name : "backend",
                 backends[i] ? backends[i]->unavailable_reason : "out of memory");
        }
    }
}

void al_test_stop(void)
{
    for (size_t i = 0; i < AL_TEST_BACKENDS; i++) {
        al_backend_destroy(backends[i]);
    }
    al_launcher_destroy(launcher);
    remove_dir();
}

struct al_backend *al_test_backend_of(enum al_test_backend bit)
{
    return backends[__builtin_ctz(bit)];
}

bool al_test_is_slow(void)
{
    return getenv("AIRLOCK_TEST_SLOW") != NULL;
}

struct al_job_spec al_test_spec(const struct al_backend *backend, const char *language,
                                const char *code)
{
    static _Atomic unsigned serial;
    const int times = al_test_is_slow() ? SLOW_TIMES : 1;
    struct al_job_spec spec = {
        .tenant_id = "test",
        .user_id = "",
        .language = al_backend_find_language(backend, language),
        .code = {(const uint8_t *)code, strlen(code)},
        .workdir = "/sandbox",
        .network = AL_NETWORK_NONE,
        .quotas = {.cpu_ms = 5000 * times,
                   .wall_ms = 10000 * times,
                   .memory_mb = 256,
                   .pids = 64,
                   .file_size_mb = 32,
                   .open_files = 64,
                   .disk_mb = 64,
                   .output_bytes = 1 << 20,
                   .artifact_bytes = 1 << 20},
    };
    if (!spec.language) {
        fail(backend->name, language);
    }
    snprintf(spec.job_id, sizeof spec.job_id, "%08x%08x", (unsigned)getpid(), serial++);
    return spec;
}

/* --- the sink and the caller --- */

struct caller {
    struct al_sink sink; /* first: append casts back */
    struct al_ctl *ctl;
    const struct al_test_caller *plan;
    struct al_test_run *run;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool started, output, ended;
    size_t room;
};

static size_t append(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n)
{
    struct caller *c = (struct caller *)sink;
    pthread_mutex_lock(&c->lock);
    size_t take = n < c->room ? n : c->room;
    c->room -= take;
    c->output = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (al_buf_append(&c->run->out[channel], data, take) < 0) {
        fail("sink", "more output than a test may keep");
    }
    return take;
}

static void started(struct al_sink *sink)
{
    struct caller *c = (struct caller *)sink;
    pthread_mutex_lock(&c->lock);
    c->run->started++;
    c->started = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Waits until the flag is set or the job has ended; false then. */
static bool wait_for(struct caller *c, const bool *flag)
{
    pthread_mutex_lock(&c->lock);
    while (!*flag && !c->ended) {
        pthread_cond_wait(&c->changed, &c->lock);
    }
    bool set = *flag;
    pthread_mutex_unlock(&c->lock);
    return set;
}

static void sleep_ms(int64_t ms)
{
    usleep((useconds_t)(ms * 1000));
}

static void meet(struct al_test_meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->come++;
    pthread_cond_broadcast(&m->changed);
    while (m->come < m->expected) {
        pthread_cond_wait(&m->changed, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
}

static void *play(void *arg)
{
    struct caller *c = arg;
    const struct al_test_caller *plan = c->plan;
    if (plan->meeting) {
        wait_for(c, &c->output);
        meet(plan->meeting);
    }
    if (!wait_for(c, &c->started)) {
        return NULL;
    }
    if (plan->stdin_on_output && !wait_for(c, &c->output)) {
        return NULL;
    }
    if (plan->stdin_text) {
        al_ctl_stdin_push(c->ctl, (const uint8_t *)plan->stdin_text, strlen(plan->stdin_text));
    }
    if (plan->stdin_eof) {
        al_ctl_stdin_eof(c->ctl);
    }
    if ((plan->cancel_on_output || plan->signal_on_output || plan->size_on_output.rows) &&
        !wait_for(c, &c->output))
    {
        return NULL;
    }
    if (plan->size_on_output.rows > 0) {
        al_ctl_resize(c->ctl, plan->size_on_output);
    }
    if (plan->signal_on_output) {
        al_ctl_signal(c->ctl, plan->signal_on_output);
    }
    if (plan->room_after_ms) {
        sleep_ms(plan->room_after_ms);
        pthread_mutex_lock(&c->lock);
        c->room = SIZE_MAX;
        pthread_mutex_unlock(&c->lock);
        al_ctl_room(c->ctl);
    }
    if (plan->cancel_after_ms) {
        sleep_ms(plan->cancel_after_ms);
    }
    if (plan->cancel_after_ms || plan->cancel_on_output) {
        al_ctl_cancel(c->ctl);
    }
    return NULL;
}

void al_test_run(struct al_backend *backend, const struct al_job_spec *spec,
                 const struct al_test_caller *plan, struct al_test_run *ret)
{
    static const struct al_sink_ops ops = {.append = append, .started = started};
    static const struct al_test_caller none;
    *ret = (struct al_test_run){0};
    al_result_init(&ret->result);
    al_buf_init(&ret->out[0], 64 << 20);
    al_buf_init(&ret->out[1], 64 << 20);
    struct caller c = {.sink.ops = &ops,
                       .ctl = al_ctl_create(),
                       .plan = plan ? plan : &none,
                       .run = ret,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    c.room = c.plan->sink_room ? c.plan->sink_room : SIZE_MAX;
    pthread_t thread;
    if (!c.ctl || pthread_create(&thread, NULL, play, &c) != 0) {
        fail("caller", "cannot start");
    }
    int64_t start_ms = al_now_ms();
    ret->rc = al_backend_run(backend, spec, c.ctl, &c.sink, &ret->result, &ret->err);
    ret->took_ms = al_now_ms() - start_ms;
    pthread_mutex_lock(&c.lock);
    c.ended = true;
    pthread_cond_signal(&c.changed);
    pthread_mutex_unlock(&c.lock);
    pthread_join(thread, NULL);
    al_ctl_destroy(c.ctl);
    for (size_t i = 0; i < 2; i++) { /* terminated, for asserts on text */
        uint8_t *end = al_buf_reserve(&ret->out[i], 1);
        if (end) {
            *end = '\0';
        }
    }
}

void al_test_run_finish(struct al_test_run *run)
{
    al_result_finish(&run->result);
    al_buf_finish(&run->out[0]);
    al_buf_finish(&run->out[1]);
}

int al_test_count_processes(const char *text)
{
    al_auto_closedir DIR *proc = opendir("/proc");
    int n = 0;
    for (struct dirent *e; proc && (e = readdir(proc)) != NULL;) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        ssize_t len = e->d_name[0] >= '0' && e->d_name[0] <= '9'
                          ? al_io_read_file(AT_FDCWD, path, line, sizeof line)
                          : 0;
        n += len > 0 && memmem(line, (size_t)len, text, strlen(text)) != NULL;
    }
    return n;
}
