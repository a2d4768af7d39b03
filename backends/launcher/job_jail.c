/*
 * A job whose program a tool starts. The launcher's own child is the tool, and what that does is of
 * no interest but for its end: orders go to the warden inside, and its reports are what a status
 * pipe, a pidfd and waitpid are to other jobs. They are believed as far as they can be true.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/io.h"
#include "backends/launcher/job_internal.h"
#include "backends/launcher/warden.h"

static int order(struct al_job *job, const void *data, size_t len, const int *fds, size_t n_fds)
{
    struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
    return al_io_send_fds(job->sources[AL_JOB_LINK].base.fd, &iov, 1, fds, n_fds, false);
}

int al_job_order_stage(struct al_job *job, const int fds[AL_STAGE_FDS], struct al_err *err)
{
    static struct al_order_stage o; /* large; the launcher has one thread */
    size_t n_fds = 0;
    while (n_fds < AL_STAGE_FDS && fds[n_fds] >= 0) {
        n_fds++;
    }
    int rc = al_order_stage_init(&o, &job->assignment,
                                 &job->jobs->config->runtimes[job->assignment.runtime]);
    rc = rc < 0 ? rc : order(job, &o, sizeof o, fds, n_fds);
    return rc < 0 ? al_err_errno(err, -rc, "the jail does not listen") : 0;
}

/* A warden that has not come to read them for so long loses some. */
void al_job_order_signal(struct al_job *job, int signo)
{
    const struct al_order_signal o = {.type = AL_ORDER_SIGNAL, .signo = signo};
    order(job, &o, sizeof o, NULL, 0);
}

/* --- what is said --- */

/* A wait status that waitpid could have given of a process that has ended. */
static bool is_end(int status)
{
    return status >= 0 && status <= 0xffff && (WIFEXITED(status) || WIFSIGNALED(status));
}

static void take_report(struct al_job *job, struct al_report *r)
{
    r->text[sizeof r->text - 1] = '\0';
    if (job->ending) {
        return;
    }
    if (r->type == AL_REPORT_READY) {
        job->settled = true;
    } else if (r->type == AL_REPORT_ENDED && job->started && !job->program_ended &&
               is_end(r->wait_status))
    {
        job->program_ended = job->assignment.stage == AL_STAGE_RUN;
        al_job_stage_ended(job, r->wait_status);
    } else if (r->type == AL_REPORT_ENDED && job->assigned && !job->started) {
        al_job_fail(job, "the program's process died before it was executed");
    } else if (r->type == AL_REPORT_FAILED) {
        job->started = false; /* if it was about to be */
        al_job_fail(job, r->text);
    }
}

static void take_mark(struct al_job *job, const struct al_mark *mark)
{
    if (!job->ending && job->assigned && !job->started) {
        job->mark = *mark;
        al_job_stage_started(job);
    }
}

void al_job_hear_warden(struct al_job *job)
{
    union {
        struct al_report report;
        struct al_mark mark;
    } said;
    const int *fd = &job->sources[AL_JOB_LINK].base.fd;
    while (*fd >= 0) {
        ssize_t got = TEMP_FAILURE_RETRY(recv(*fd, &said, sizeof said, MSG_DONTWAIT));
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got == (ssize_t)sizeof said.report) {
            take_report(job, &said.report);
        } else if (got == (ssize_t)sizeof said.mark) {
            take_mark(job, &said.mark);
        } else {
            al_job_drop_source(job, AL_JOB_LINK); /* the tool's end tells the rest */
            return;
        }
    }
}

static void on_link(struct al_source *source)
{
    al_job_hear_warden(((struct al_job_source *)source)->job);
}

int al_job_watch_link(struct al_job *job, int link_fd, struct al_err *err)
{
    if (al_job_add_source(job, AL_JOB_LINK, link_fd, on_link) < 0) {
        return al_err_errno(err, errno, "cannot watch the jail");
    }
    return al_jail_send_check(&job->plan, link_fd, err);
}

void al_job_hear_tool(struct al_job *job)
{
    char text[512];
    const int fd = job->sources[AL_JOB_STATUS].base.fd;
    size_t len = strlen(job->tool_said);
    ssize_t got;
    while ((got = read(fd, text, sizeof text - 1)) > 0) {
        text[got] = '\0';
        al_err_copy_text(job->tool_said + len, sizeof job->tool_said - len, text);
        len += strlen(job->tool_said + len);
    }
    if (got == 0) {
        al_job_drop_source(job, AL_JOB_STATUS);
        if (job->assignment.stage == AL_STAGE_COLLECT) {
            al_job_collector_said(job->tool_said);
        }
    }
}

/* --- the end --- */

static void explain(const struct al_job *job, int wait_status)
{
    char text[AL_ERR_TEXT_MAX];
    const char *name = al_jail_tool_name(job->plan.jail->tool);
    snprintf(text, sizeof text, "%s ended with %s %d before the program began%s%.300s", name,
             WIFSIGNALED(wait_status) ? "signal" : "code",
             WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status),
             job->tool_said[0] ? ": " : "", job->tool_said);
    al_job_fail((struct al_job *)job, text);
}

/* What ran when the jail ended was killed with it: by a limit, by the caller, by the kernel for
 * want of memory, or where the warden is not out of its reach, by itself. */
void al_job_tool_ended(struct al_job *job, int wait_status)
{
    bool asked_for = job->ending;
    al_job_hear_warden(job);
    if (job->assignment.stage == AL_STAGE_COLLECT) {
        al_job_end(job);
    } else if (job->started && !job->program_ended) {
        al_job_stage_ended(job, SIGKILL);
    } else if (!asked_for && !job->ending) {
        explain(job, wait_status);
    }
}
