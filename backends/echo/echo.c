#include "backends/echo/echo.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/base/clock.h"

static const struct al_language languages[] = {
    {.name = "python", .version = "0", .aliases = {"python3", "py"}, .code_file = "main.py"},
    {.name = "javascript", .version = "0", .aliases = {"js", "node"}, .code_file = "main.js"},
    {.name = "typescript",
     .version = "0",
     .aliases = {"ts"},
     .code_file = "main.ts",
     .output_file = "main.js"},
    {.name = "bash", .version = "0", .aliases = {"sh"}, .code_file = "main.sh"},
};

#define CAPABILITIES                                                                          \
    (AL_CAP_STREAM | AL_CAP_STDIN | AL_CAP_FILES | AL_CAP_ENV | AL_CAP_ARGS | AL_CAP_INPUTS | \
     AL_CAP_WORKDIR)

/* Waits until the ctl says something; false when the job is to die, or its time is over. */
static bool wait_for_room(struct al_ctl *ctl, int64_t until_ms, struct al_err *err, int *ret_error)
{
    struct pollfd pfd = {.fd = al_ctl_fd(ctl), .events = POLLIN};
    int64_t left_ms = until_ms - al_now_ms();
    int n = left_ms <= 0 ? 0 : poll(&pfd, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    if (n < 0 && errno != EINTR) {
        *ret_error = al_err_errno(err, errno, "echo: poll");
        return false;
    }
    al_ctl_clear(ctl);
    return !al_ctl_cancelled(ctl) && al_now_ms() < until_ms;
}

static void set_outcome(const struct al_job_spec *spec, struct al_result *result, bool finished,
                        bool cancelled, bool cut)
{
    if (!finished && cancelled) {
        result->status = AL_STATUS_KILLED;
        result->reason = AL_REASON_CANCELLED;
        return;
    }
    if (!finished) {
        result->status = AL_STATUS_TIMEOUT;
        result->reason = AL_REASON_LIMIT;
        result->limit_hit = AL_LIMIT_WALL;
        result->stdout_truncated = true;
        snprintf(result->error, sizeof result->error, "wall_seconds limit of %g s reached",
                 (double)spec->quotas.wall_ms / 1000);
        return;
    }
    result->status = cut ? AL_STATUS_FAILED : AL_STATUS_SUCCEEDED;
    result->reason = cut ? AL_REASON_LIMIT : AL_REASON_EXIT;
    result->limit_hit = cut ? AL_LIMIT_OUTPUT : AL_LIMIT_NONE;
    result->stdout_truncated = cut;
    if (!cut) {
        result->exit_kind = AL_EXIT_CODE;
        result->exit_value = 0;
    }
}

static int echo_run(struct al_backend *backend, const struct al_job_spec *spec, struct al_ctl *ctl,
                    struct al_sink *sink, struct al_result *result, struct al_err *err)
{
    (void)backend;
    int64_t start_ns = al_now_ns();
    int64_t until_ms = al_now_ms() + spec->quotas.wall_ms;
    size_t left = spec->code.len;
    bool cut = spec->quotas.output_bytes > 0 && left > spec->quotas.output_bytes;
    if (cut) {
        left = (size_t)spec->quotas.output_bytes;
    }
    const uint8_t *at = spec->code.data;
    bool alive = !al_ctl_cancelled(ctl);
    int error = 0;
    if (alive) {
        al_sink_started(sink);
        al_ctl_stdin_closed(ctl);
    }
    while (alive && left > 0) {
        size_t taken = al_sink_append(sink, AL_STDOUT, at, left);
        at += taken;
        left -= taken;
        if (left > 0) {
            alive = wait_for_room(ctl, until_ms, err, &error);
        }
    }
    set_outcome(spec, result, alive, al_ctl_cancelled(ctl), cut);
    result->duration_us = (al_now_ns() - start_ns) / 1000;
    return error;
}

static void echo_destroy(struct al_backend *backend)
{
    free(backend);
}

static const struct al_backend_ops ops = {
    .run = echo_run,
    .destroy = echo_destroy,
};

struct al_backend *al_echo_create(void)
{
    struct al_backend *backend = calloc(1, sizeof *backend);
    if (!backend) {
        return NULL;
    }
    *backend = (struct al_backend){
        .ops = &ops,
        .name = "echo",
        .version = "1",
        .languages = languages,
        .n_languages = sizeof languages / sizeof languages[0],
        .capabilities = CAPABILITIES,
        .available = true,
    };
    return backend;
}
