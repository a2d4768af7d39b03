#include "service/session.h"

#include <errno.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "service/stream.h"

struct al_session *al_session_create(struct al_service *service, int64_t linger_ms)
{
    struct al_session *session = calloc(1, sizeof *session);
    if (!session) {
        return NULL;
    }
    atomic_init(&session->entry.refs, 1);
    pthread_mutex_init(&session->lock, NULL);
    session->service = service;
    session->linger_ms = linger_ms;
    return session;
}

void al_session_unref(struct al_session *session)
{
    if (session && atomic_fetch_sub(&session->entry.refs, 1) == 1) {
        al_stream_stdin_drop(session);
        al_admit_release(session->service, &session->admitted);
        pthread_mutex_destroy(&session->lock);
        free(session);
    }
}

static struct al_session *ref(struct al_session *session)
{
    atomic_fetch_add(&session->entry.refs, 1);
    return session;
}

/* Nobody will come for them any more. */
static void give_up(struct al_linger_entry *chain)
{
    while (chain) {
        struct al_session *session = (struct al_session *)chain;
        chain = chain->next;
        al_job_discard(session->admitted.job);
        (void)al_job_cancel(session->admitted.job);
        al_session_unref(session);
    }
}

int al_session_submit(struct al_session *session, struct al_stream *stream, struct al_err *err)
{
    struct al_service *service = session->service;
    session->entry.job = session->admitted.job;
    session->stream = stream;
    if (session->linger_ms > 0) {
        al_linger_add(service->linger, &session->entry);
    }
    (void)ref(session); /* al_session_run's */
    int r = al_admit_submit(service, &session->admitted, err);
    if (r < 0) {
        session->stream = NULL;
        if (al_linger_remove(service->linger, &session->entry)) {
            al_session_unref(session);
        }
        al_session_unref(session);
    }
    return r;
}

/* Executor's thread, or the thread that took the job out of the queue. The events that this makes
 * are all that a client sees of it. */
void al_session_run(struct al_task *task, bool removed)
{
    struct al_job *job = al_job_of_task(task);
    struct al_session *session = al_job_owner(job);
    struct al_service *service = session->service;
    al_admit_run(service, job, removed);
    if (session->linger_ms > 0) {
        al_admit_ended(service, &session->admitted);
        give_up(al_linger_ended(service->linger, &session->entry, al_job_memory(job)));
    }
    al_session_unref(session);
}

static int explain_missing(struct al_service *service, const char *tenant, const char *job_id,
                           struct al_err *err)
{
    struct al_job *job = al_jobs_find(service->jobs, tenant, job_id);
    const char *why = !job                   ? "there is no such job, or it ended long ago"
                      : !al_job_lingers(job) ? "it was started without linger_seconds"
                                             : "its time to linger is over";
    al_job_unref(job);
    return al_err_set(err, AL_ERR_NOT_FOUND, "job %s: %s", job_id, why);
}

int al_session_find(struct al_service *service, const char *tenant, const char *job_id,
                    struct al_session **ret, struct al_err *err)
{
    struct al_linger_entry *entry = al_linger_find(service->linger, tenant, job_id);
    if (!entry) {
        return explain_missing(service, tenant, job_id, err);
    }
    *ret = (struct al_session *)entry;
    return 0;
}

int al_session_attach(struct al_session *session, struct al_stream *stream, uint64_t after_sequence,
                      struct al_stream **ret_before, bool *ret_was_idle, struct al_err *err)
{
    struct al_service *service = session->service;
    struct al_job *job = session->admitted.job;
    int64_t until_ms = al_linger_read(service->linger, &session->entry);
    if (until_ms < 0) {
        return explain_missing(service, al_job_tenant(job), al_job_id(job), err);
    }
    int r = al_job_attach(job, &stream->reader, after_sequence, ret_was_idle);
    if (r == 0) {
        *ret_before = session->stream;
        session->stream = stream;
        al_stream_stdin_drop(session);
    } else if (until_ms != INT64_MAX) {
        give_up(al_linger_unread(service->linger, &session->entry, until_ms));
    }
    return r;
}

void al_session_left(struct al_session *session, const struct al_stream *stream)
{
    if (session->stream != stream) {
        return;
    }
    session->stream = NULL;
    al_stream_stdin_drop(session);
    if (session->linger_ms > 0) {
        give_up(al_linger_unread(session->service->linger, &session->entry,
                                 al_now_ms() + session->linger_ms));
    } else {
        (void)al_job_cancel(session->admitted.job);
    }
}

int64_t al_session_expire(struct al_service *service)
{
    int64_t now_ms = al_now_ms();
    if (al_linger_next_ms(service->linger) <= now_ms) {
        give_up(al_linger_expire(service->linger, now_ms));
    }
    return al_linger_next_ms(service->linger);
}

void al_session_drain(struct al_service *service)
{
    give_up(al_linger_drain(service->linger));
}

uint64_t al_session_stdin_received(struct al_session *session)
{
    pthread_mutex_lock(&session->lock);
    uint64_t received = session->stdin_received;
    pthread_mutex_unlock(&session->lock);
    return received;
}
