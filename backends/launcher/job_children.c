/*
 * Whose child is it? The launcher is the parent of all that its jobs clone, and of what a program
 * foists on it.
 */
#include "backends/launcher/job_internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct al_job *find_child(const struct al_jobs *jobs, pid_t pid)
{
    for (uint32_t i = 0; i < jobs->config->jobs_max; i++) {
        struct al_job *job = jobs->slots[i];
        if (job && (job->pid == pid || job->setter == pid ||
                    (!job->init_reaped && job->cell.init_pid == pid)))
        {
            return job;
        }
    }
    return NULL;
}

/* A program may give its parent, us, further children (CLONE_PARENT; only a native cell's filter
 * refuses it), and its init does not end before somebody has reaped them. Stops at a child that has
 * a handler: that comes first, and this once more. */
void al_jobs_reap_strays(const struct al_jobs *jobs)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 && info.si_pid > 0 &&
           !find_child(jobs, info.si_pid))
    {
        waitpid(info.si_pid, NULL, __WALL);
        info.si_pid = 0;
    }
}

static bool is_alive(pid_t pid)
{
    siginfo_t info = {0};
    return pid != 0 &&
           (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0);
}

/* Then no limit has ended it. The end of a compile step ends nothing. */
bool al_job_has_ended(const struct al_job *job)
{
    return job->assignment.stage == AL_STAGE_COLLECT ||
           (job->assignment.stage == AL_STAGE_RUN &&
            (al_cell_is_jail(job->plan.kind) ? job->program_ended : !is_alive(job->pid)));
}

bool al_job_can_start(const struct al_job *job)
{
    bool hears = !al_cell_is_jail(job->plan.kind) || job->sources[AL_JOB_LINK].base.fd >= 0;
    return !job->ending && hears && is_alive(job->pid) &&
           (!job->has_setter || is_alive(job->setter));
}

static size_t count_children(const struct al_jobs *jobs)
{
    size_t n = 0;
    for (uint32_t i = 0; i < jobs->config->jobs_max; i++) {
        const struct al_job *job = jobs->slots[i];
        n += job ? (job->pid > 0) + (job->setter > 0) + !job->init_reaped : 0;
    }
    return n;
}

void al_jobs_kill_all(struct al_jobs *jobs)
{
    for (uint32_t i = 0; i < jobs->config->jobs_max; i++) {
        struct al_job *job = jobs->slots[i];
        if (job && !job->init_reaped) {
            al_cell_kill(&job->cell);
        }
        if (job && job->setter > 0) {
            kill(job->setter, SIGKILL);
        }
    }
    /* Whoever comes, strays too: an init ends only after every other process of its namespace. */
    for (size_t left = count_children(jobs); left > 0;) {
        pid_t pid = TEMP_FAILURE_RETRY(waitpid(-1, NULL, __WALL));
        if (pid < 0) {
            return;
        }
        struct al_job *job = find_child(jobs, pid);
        if (job) {
            *(job->pid == pid      ? &job->pid
              : job->setter == pid ? &job->setter
                                   : &job->cell.init_pid) = 0;
            left--;
        }
    }
}
