/*
 * Theory of operation. Create, attach, start: the job is on its way before the container runs. Then
 * the pump, until init has said how it ended. The container is removed by force in any case; a
 * removal that fails is tried again later, and again at the next start of the instance. A daemon
 * that is not there any more is an error of the backend, and so is an init that dies without a
 * word: unless the memory limit has killed it.
 */
#include "backends/docker/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/docker/body.h"
#include "backends/docker/image.h"
#include "backends/docker/pump.h"
#include "backends/docker/words.h"
#include "backends/process/outcome.h"

#define CREATE_MS 30000
#define START_MS  60000
#define KILL_MS   5000
#define REMOVE_MS 20000

struct run {
    struct al_docker_host *host;
    const struct al_docker_runtime *runtime;
    const struct al_job_spec *spec;
    struct al_ctl *ctl;
    struct al_result *result;
    char name[AL_CONTAINER_NAME_MAX];
    bool maybe_there; /* the container has to be removed */
    struct al_pump pump;
};

/* --- calls --- */

/* A call about the container: METHOD /containers/NAME`rest`. */
static int call(const struct run *r, const char *method, const char *rest, int64_t timeout_ms,
                struct al_ctl *ctl, struct al_engine_answer *ret, struct al_err *err)
{
    char path[256];
    snprintf(path, sizeof path, "/containers/%s%s", r->name, rest);
    const struct al_engine_call c = {
        .method = method, .path = path, .timeout_ms = timeout_ms, .ctl = ctl};
    return al_engine_call(r->host->engine, &c, ret, err);
}

static int create(struct run *r, struct al_err *err)
{
    char path[256];
    const struct al_docker_config *config = r->host->config;
    const struct al_docker_create create = {.image = r->runtime->derived,
                                            .user = config->user,
                                            .instance = r->host->instance,
                                            .job_id = r->spec->job_id,
                                            .oci_runtime = config->oci_runtime,
                                            .entrypoint = AL_DOCKER_INIT_PATH,
                                            .quotas = &r->spec->quotas};
    al_auto_free char *body = al_docker_body_create(&create);
    if (!body) {
        return al_err_errno(err, ENOMEM, "docker");
    }
    snprintf(path, sizeof path, "/containers/create?name=%s", r->name);
    const struct al_engine_call c = {.method = "POST",
                                     .path = path,
                                     .type = "application/json",
                                     .body = body,
                                     .body_len = strlen(body),
                                     .timeout_ms = CREATE_MS};
    r->maybe_there = true;
    return al_engine_do(r->host->engine, &c, 201, err);
}

/* The container may be gone already. False: it may still be there. */
static bool remove_container(struct al_engine *engine, const char *name)
{
    char path[256];
    struct al_engine_answer answer;
    snprintf(path, sizeof path, "/containers/%s?force=1&v=1", name);
    const struct al_engine_call c = {.method = "DELETE", .path = path, .timeout_ms = REMOVE_MS};
    if (al_engine_call(engine, &c, &answer, NULL) < 0) {
        return false;
    }
    bool gone = answer.status == 204 || answer.status == 404;
    al_buf_finish(&answer.body);
    return gone;
}

/* What failed before is tried once more, now that the daemon answers. */
static void remove_leftover(struct al_docker_host *host)
{
    char name[AL_CONTAINER_NAME_MAX];
    if (al_leftover_take(&host->leftover, name) && !remove_container(host->engine, name)) {
        al_leftover_add(&host->leftover, name);
    }
}

static void remove_own(struct run *r)
{
    if (!r->maybe_there) {
        return;
    }
    if (remove_container(r->host->engine, r->name)) {
        remove_leftover(r->host);
    } else {
        al_leftover_add(&r->host->leftover, r->name);
    }
}

/* Best effort: without it the collector has what the program has left. */
static void make_room(void *arg)
{
    const struct run *r = arg;
    char path[256];
    al_auto_free char *body =
        al_docker_body_update(r->spec->quotas.memory_mb + AL_CONTAINER_ROOM_MB);
    snprintf(path, sizeof path, "/containers/%s/update", r->name);
    const struct al_engine_call c = {.method = "POST",
                                     .path = path,
                                     .type = "application/json",
                                     .body = body,
                                     .body_len = body ? strlen(body) : 0,
                                     .timeout_ms = KILL_MS};
    if (body) {
        (void)al_engine_do(r->host->engine, &c, 0, NULL);
    }
}

static int start(struct run *r, struct al_err *err)
{
    struct al_engine_answer answer;
    r->pump.begun_ms = r->pump.heard_ms = al_now_ms();
    int rc = call(r, "POST", "/start", START_MS, r->ctl, &answer, err);
    if (rc < 0) {
        return rc;
    }
    rc = answer.status == 204 ? 0 : al_engine_refused(&answer, "start", err);
    al_buf_finish(&answer.body);
    return rc;
}

static int attach(struct run *r, struct al_err *err)
{
    char path[256];
    snprintf(path, sizeof path, "/containers/%s/attach?stream=1&stdin=1&stdout=1&stderr=1",
             r->name);
    return al_hijack_open(r->host->engine, path, &r->pump.hijack, err);
}

/* --- how it ends --- */

/* Init did not say: the daemon may know. */
static int explain_loss(struct run *r, struct al_err *err)
{
    struct al_engine_answer answer;
    struct al_docker_state state;
    int rc = call(r, "GET", "/json", KILL_MS, NULL, &answer, err);
    if (rc < 0) {
        return rc;
    }
    if (answer.status != 200 ||
        al_docker_read_state((const char *)answer.body.data, answer.body.len, &state) < 0)
    {
        rc = al_engine_refused(&answer, "inspect", err);
    } else if (state.oom_killed) {
        struct al_msg_exit *e = &r->pump.exit;
        e->oom_kills = 1;
        e->ran = r->pump.started;
        e->wait_status = SIGKILL;
    } else {
        rc = al_err_set(err, AL_ERR_INTERNAL,
                        "docker: the container ended without a result (exit code %d%s%s%s%s)",
                        state.exit_code, state.error[0] ? ", " : "", state.error,
                        r->pump.words[0] ? ", " : "", r->pump.words);
    }
    al_buf_finish(&answer.body);
    return rc;
}

/* A job that was to die has; of one that had not begun nothing else is known. */
static int take_loss(struct run *r, struct al_err *err)
{
    struct al_pump *p = &r->pump;
    if (p->cancelled || p->over_output) {
        p->exit.killed = true;
        p->exit.ran = p->started;
        p->exit.wait_status = SIGKILL;
        p->exit.duration_us = p->started ? (al_now_ms() - p->started_ms) * 1000 : 0;
        return 0;
    }
    return p->exited ? 0 : explain_loss(r, err);
}

static int kill_container(struct run *r, struct al_err *err)
{
    struct al_engine_answer answer;
    int rc = call(r, "POST", "/kill?signal=SIGKILL", KILL_MS, NULL, &answer, err);
    if (rc == 0) {
        al_buf_finish(&answer.body); /* 409: it has ended */
    }
    return rc;
}

static int talk(struct run *r, struct al_err *err)
{
    struct al_pump *p = &r->pump;
    enum al_pump_end end = al_pump_run(p, err);
    bool told = p->cancelled || p->over_output;
    if (end == AL_PUMP_HANGS) {
        int rc = kill_container(r, err);
        if (rc < 0) {
            return rc;
        }
        p->dying = true;
        p->killed_ms = al_now_ms();
        end = al_pump_run(p, err);
        if (!told && end != AL_PUMP_ENDED) {
            return al_err_set(err, AL_ERR_INTERNAL, "docker: the container did not %s in time",
                              p->started ? "end" : "start");
        }
    }
    return end == AL_PUMP_FAILED ? -EIO : end == AL_PUMP_ENDED ? 0 : take_loss(r, err);
}

/* A job that was killed has no artifacts; neither has one whose program never ran. */
static void finish_artifacts(struct run *r)
{
    const struct al_result *result = r->result;
    bool ended = result->status == AL_STATUS_SUCCEEDED || result->status == AL_STATUS_FAILED;
    if (r->spec->n_artifacts == 0 || !r->pump.exit.ran || !ended || r->pump.over_output) {
        al_artifacts_finish(&r->result->artifacts);
    }
}

/* --- from the top --- */

static int make_plan(const struct run *r, const char *compile, const char *argv,
                     struct al_container_plan *plan, struct al_docker_words words[2],
                     struct al_err *err)
{
    const struct al_job_spec *spec = r->spec;
    const struct al_quotas *q = &spec->quotas;
    const struct al_docker_image *image = r->runtime->image;
    al_auto_free char *code = NULL, *output = NULL;
    if (asprintf(&code, "%s/%s", spec->workdir, image->code_file) < 0 ||
        asprintf(&output, "%s/%s", spec->workdir, image->output_file) < 0 ||
        al_docker_words_make(&words[0], compile, code, output) < 0 ||
        al_docker_words_make(&words[1], argv, code, output) < 0)
    {
        return al_err_set(err, AL_ERR_INTERNAL, "docker: cannot make the program's argv");
    }
    int64_t reader_ms = q->wall_ms > 5000 ? q->wall_ms : 5000;
    *plan = (struct al_container_plan){.job = {.version = AL_CONTAINER_VERSION,
                                               .n_compile = (uint32_t)words[0].n,
                                               .n_argv = (uint32_t)words[1].n,
                                               .terminal = spec->terminal,
                                               .cpu_ms = q->cpu_ms,
                                               .wall_ms = q->wall_ms,
                                               .patience_ms = reader_ms + spec->linger_ms,
                                               .artifact_bytes = q->artifact_bytes,
                                               .memory_mb = q->memory_mb,
                                               .pids = q->pids,
                                               .file_size_mb = q->file_size_mb,
                                               .open_files = q->open_files,
                                               .require = r->host->config->require},
                                       .workdir = spec->workdir,
                                       .code_file = image->code_file};
    memcpy(plan->compile, words[0].word, sizeof words[0].word);
    memcpy(plan->argv, words[1].word, sizeof words[1].word);
    return 0;
}

static int run_container(struct run *r, struct al_err *err)
{
    int rc = create(r, err);
    rc = rc < 0 ? rc : attach(r, err);
    rc = rc < 0 ? rc : al_pump_send(&r->pump);
    rc = rc < 0 ? rc : start(r, err);
    if (rc < 0 && al_ctl_cancelled(r->ctl)) {
        r->pump.cancelled = true;
        return take_loss(r, err);
    }
    if (rc < 0 && !al_err_is_set(err)) {
        return al_err_errno(err, -rc, "docker: cannot send the job");
    }
    return rc < 0 ? rc : talk(r, err);
}

static int run_planned(struct run *r, const struct al_container_plan *plan, struct al_sink *sink,
                       struct al_err *err)
{
    struct al_pump *p = &r->pump;
    int rc = al_pump_init(p, r->spec, plan, &r->host->filter, r->ctl, sink, r->result);
    p->make_room = make_room;
    p->arg = r;
    rc = rc < 0 ? al_err_errno(err, -rc, "docker") : run_container(r, err);
    if (rc == 0) {
        r->result->stdout_truncated = p->truncated[AL_STDOUT];
        r->result->stderr_truncated = p->truncated[AL_STDERR];
        al_outcome_exit(r->spec, &p->exit, p->cancelled, p->over_output, r->result);
        rc = r->result->reason == AL_REASON_BACKEND
                 ? al_err_set(err, AL_ERR_INTERNAL, "%s", r->result->error)
                 : 0;
    }
    al_pump_finish(p);
    finish_artifacts(r);
    remove_own(r);
    return rc;
}

int al_docker_run(struct al_docker_host *host, const struct al_docker_runtime *runtime,
                  const char *compile, const char *argv, const struct al_job_spec *spec,
                  struct al_ctl *ctl, struct al_sink *sink, struct al_result *result,
                  struct al_err *err)
{
    struct al_container_plan plan;
    struct al_docker_words words[2] = {{.n = 0}, {.n = 0}};
    struct run *r = calloc(1, sizeof *r); /* too large for an executor's stack */
    if (!r) {
        return al_err_errno(err, ENOMEM, "docker");
    }
    r->host = host;
    r->runtime = runtime;
    r->spec = spec;
    r->ctl = ctl;
    r->result = result;
    snprintf(r->name, sizeof r->name, "airlock-%s-%s", host->instance, spec->job_id);
    int rc = make_plan(r, compile, argv, &plan, words, err);
    rc = rc < 0 ? rc : run_planned(r, &plan, sink, err);
    al_docker_words_finish(&words[0]);
    al_docker_words_finish(&words[1]);
    free(r);
    return rc;
}
