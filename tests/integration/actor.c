#include "tests/integration/actor.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"

struct actor {
    struct al_backend base;
    atomic_uint running;
    atomic_ullong printed;
};

struct act {
    struct actor *actor;
    struct al_ctl *ctl;
    struct al_sink *sink;
    int64_t until_ms;
};

enum wait_end { WAIT_CTL, WAIT_CANCELLED, WAIT_TIMEOUT };

static enum wait_end wait_ctl(struct act *act)
{
    struct pollfd pfd = {.fd = al_ctl_fd(act->ctl), .events = POLLIN};
    int64_t left_ms = act->until_ms - al_now_ms();
    if (left_ms <= 0 || poll(&pfd, 1, (int)left_ms) == 0) {
        return WAIT_TIMEOUT;
    }
    al_ctl_clear(act->ctl);
    return al_ctl_cancelled(act->ctl) ? WAIT_CANCELLED : WAIT_CTL;
}

/* All of it, waiting for room. */
static enum wait_end print(struct act *act, const uint8_t *data, size_t n)
{
    enum wait_end end = WAIT_CTL;
    while (n > 0 && end == WAIT_CTL) {
        size_t taken = al_sink_append(act->sink, AL_STDOUT, data, n);
        atomic_fetch_add(&act->actor->printed, taken);
        data += taken;
        n -= taken;
        if (n > 0) {
            end = wait_ctl(act);
        }
    }
    return end;
}

static enum wait_end act_wait(struct act *act)
{
    enum wait_end end;
    while ((end = wait_ctl(act)) == WAIT_CTL) {
    }
    return end;
}

static enum wait_end act_cat(struct act *act)
{
    uint8_t data[4096];
    bool eof = false;
    enum wait_end end = WAIT_CTL;
    while (end == WAIT_CTL) {
        size_t n = al_ctl_stdin_peek(act->ctl, data, sizeof data, &eof);
        if (n > 0) {
            end = print(act, data, n);
            al_ctl_stdin_drop(act->ctl, n);
        } else if (eof) {
            break;
        } else {
            end = wait_ctl(act);
        }
    }
    return end;
}

static enum wait_end act_count_in(struct act *act)
{
    uint8_t data[4096];
    uint64_t total = 0;
    bool eof = false;
    enum wait_end end = WAIT_CTL;
    (void)poll(NULL, 0, 200);
    while (end == WAIT_CTL) {
        size_t n = al_ctl_stdin_peek(act->ctl, data, sizeof data, &eof);
        total += n;
        al_ctl_stdin_drop(act->ctl, n);
        if (eof) {
            break;
        }
        end = n > 0 ? WAIT_CTL : wait_ctl(act);
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%llu\n", (unsigned long long)total);
    return end == WAIT_CTL ? print(act, (const uint8_t *)text, (size_t)len) : end;
}

static enum wait_end act_flood(struct act *act, uint64_t n)
{
    static const uint8_t zeros[50000];
    enum wait_end end = WAIT_CTL;
    while (n > 0 && end == WAIT_CTL) {
        size_t more = n < sizeof zeros ? n : sizeof zeros;
        end = al_ctl_cancelled(act->ctl) ? WAIT_CANCELLED : print(act, zeros, more);
        n -= more;
    }
    return end;
}

uint8_t al_actor_byte(uint64_t at)
{
    return (uint8_t)((at * 2654435761u) >> 13);
}

static enum wait_end act_count(struct act *act, uint64_t n)
{
    uint8_t bytes[3000];
    enum wait_end end = WAIT_CTL;
    for (uint64_t at = 0; at < n && end == WAIT_CTL;) {
        size_t more = at % sizeof bytes + 1;
        more = n - at < more ? (size_t)(n - at) : more;
        for (size_t i = 0; i < more; i++) {
            bytes[i] = al_actor_byte(at + i);
        }
        end = al_ctl_cancelled(act->ctl) ? WAIT_CANCELLED : print(act, bytes, more);
        at += more;
    }
    return end;
}

static enum wait_end act_signals(struct act *act)
{
    enum wait_end end = WAIT_CTL;
    while (end == WAIT_CTL) {
        char text[16];
        int signo = al_ctl_take_signal(act->ctl);
        if (signo > 0) {
            int n = snprintf(text, sizeof text, "%d\n", signo);
            end = print(act, (const uint8_t *)text, (size_t)n);
        } else {
            end = wait_ctl(act);
        }
    }
    return end;
}

static enum wait_end perform(struct act *act, const char *code)
{
    if (strcmp(code, "cat") == 0) {
        return act_cat(act);
    }
    if (strcmp(code, "count-in") == 0) {
        return act_count_in(act);
    }
    if (strncmp(code, "flood ", 6) == 0) {
        return act_flood(act, strtoull(code + 6, NULL, 10));
    }
    if (strncmp(code, "count ", 6) == 0) {
        return act_count(act, strtoull(code + 6, NULL, 10));
    }
    if (strcmp(code, "signals") == 0) {
        return act_signals(act);
    }
    return act_wait(act);
}

static int actor_run(struct al_backend *base, const struct al_job_spec *spec, struct al_ctl *ctl,
                     struct al_sink *sink, struct al_result *result, struct al_err *err)
{
    struct actor *actor = (struct actor *)base;
    struct act act = {actor, ctl, sink, al_now_ms() + spec->quotas.wall_ms};
    char code[64] = "";
    memcpy(code, spec->code.data, spec->code.len < 63 ? spec->code.len : 63);
    if (strcmp(code, "fail") == 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the actor fell");
    }
    atomic_fetch_add(&actor->running, 1);
    enum wait_end end = al_ctl_cancelled(ctl) ? WAIT_CANCELLED : perform(&act, code);
    atomic_fetch_sub(&actor->running, 1);
    result->status = end == WAIT_CTL         ? AL_STATUS_SUCCEEDED
                     : end == WAIT_CANCELLED ? AL_STATUS_KILLED
                                             : AL_STATUS_TIMEOUT;
    result->reason = end == WAIT_CTL         ? AL_REASON_EXIT
                     : end == WAIT_CANCELLED ? AL_REASON_CANCELLED
                                             : AL_REASON_LIMIT;
    result->limit_hit = end == WAIT_TIMEOUT ? AL_LIMIT_WALL : AL_LIMIT_NONE;
    result->exit_kind = end == WAIT_CTL ? AL_EXIT_CODE : AL_EXIT_NONE;
    return 0;
}

static void actor_destroy(struct al_backend *base)
{
    free(base);
}

unsigned al_actor_running(const struct al_backend *backend)
{
    return atomic_load(&((const struct actor *)backend)->running);
}

uint64_t al_actor_printed(const struct al_backend *backend)
{
    return atomic_load(&((const struct actor *)backend)->printed);
}

struct al_backend *al_actor_create(void)
{
    static const struct al_backend_ops ops = {.run = actor_run, .destroy = actor_destroy};
    static const struct al_language python = {.name = "python", .version = "0"};
    struct actor *actor = calloc(1, sizeof *actor);
    if (!actor) {
        return NULL;
    }
    actor->base = (struct al_backend){
        .ops = &ops,
        .name = "actor",
        .version = "1",
        .languages = &python,
        .n_languages = 1,
        .capabilities = AL_CAP_STREAM | AL_CAP_STDIN | AL_CAP_SIGNALS,
        .available = true,
    };
    return &actor->base;
}
