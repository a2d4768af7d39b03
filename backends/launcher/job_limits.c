/*
 * A job's timer: its wall and CPU limits, what it has used so far, and its share of the processors,
 * which falls with that. A program that has had much yields to one that has had little: a short job
 * does not wait for long ones, nor for what only burns. Among themselves the long ones are equal.
 */
#include <sys/timerfd.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/launcher/job_internal.h"

#define CPU_CHECK_MIN_NS 2000000 /* below a scheduler tick nothing is gained */
#define CPU_CHECK_MAX_NS 1000000000
#define CPU_CHECK_NEW_NS 100000000 /* the most while a job is new */

static void kill_for_limit(struct al_job *job, enum al_limit limit)
{
    if (!job->ending && !al_job_has_ended(job)) {
        job->exit.limit = limit;
        al_job_end_cell(job);
    }
}

void al_job_arm_timer(struct al_job *job, int64_t at_ns)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}};
    timerfd_settime(job->sources[AL_JOB_TIMER].base.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int64_t clamp_ns(int64_t ns, int64_t least, int64_t most)
{
    return ns < least ? least : ns > most ? most : ns;
}

/* At the wall deadline, or when the CPU limit could be met at the earliest with every core busy;
 * and whenever the job has become twice as old, later once a second, so that what it uses is known
 * while it runs. */
void al_job_arm_limits(struct al_job *job, int64_t now_ns, int64_t cpu_us)
{
    static long cores;
    cores = cores > 0 ? cores : sysconf(_SC_NPROCESSORS_ONLN);
    int64_t left_ns =
        (job->assignment.spawn.quotas.cpu_ms * 1000 - cpu_us) * 1000 / (cores > 0 ? cores : 1);
    int64_t age_ns = now_ns - job->stage_started_ns;
    int64_t most_ns = clamp_ns(age_ns, CPU_CHECK_NEW_NS, CPU_CHECK_MAX_NS);
    left_ns = clamp_ns(left_ns, CPU_CHECK_MIN_NS, most_ns);
    int64_t cpu_check_ns = now_ns + left_ns;
    al_job_arm_timer(job,
                     cpu_check_ns < job->wall_deadline_ns ? cpu_check_ns : job->wall_deadline_ns);
}

int64_t al_job_cpu_us(const struct al_job *job)
{
    return job->jobs->cgroups->ops->cpu_us(job->jobs->cgroups, job->name);
}

static void lower_share(struct al_job *job, int64_t cpu_us)
{
    static const struct {
        int64_t from_us;
        uint32_t percent;
    } steps[] = {{400000, 25}, {100000, 50}};
    const struct al_cgroup_ops *ops = job->jobs->cgroups->ops;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (cpu_us >= steps[i].from_us) {
            if (job->share_percent != steps[i].percent) {
                job->share_percent = steps[i].percent;
                ops->share(job->jobs->cgroups, job->name, steps[i].percent);
            }
            return;
        }
    }
}

static void tell_usage(struct al_job *job, int64_t cpu_us)
{
    if (cpu_us > job->cpu_told_us) {
        uint8_t data[AL_MSG_BYTES_MAX];
        struct al_msg_usage m = {.cpu_us = cpu_us};
        job->cpu_told_us = cpu_us;
        al_job_send(job, data, al_msg_encode_usage(&m, data), NULL, 0);
    }
}

void al_job_on_timer(struct al_source *source)
{
    struct al_job *job = ((struct al_job_source *)source)->job;
    uint64_t count;
    if (read(source->fd, &count, sizeof count) != (ssize_t)sizeof count) {
        return;
    }
    if (job->ending) {
        al_jobs_reap_strays(job->jobs);
        al_job_arm_timer(job, al_now_ns() + AL_STRAY_CHECK_NS);
        return;
    }
    int64_t now_ns = al_now_ns();
    al_job_hear_warden(job);
    if (job->ending) {
        return; /* the end has set the timer */
    }
    if (job->assignment.stage == AL_STAGE_COLLECT) {
        al_job_watch_collector(job, now_ns);
        return;
    }
    if (!job->announced) {
        al_job_set_error(job, "the cell was not ready in time");
        al_job_end_cell(job);
        return;
    }
    if (now_ns >= job->wall_deadline_ns) {
        kill_for_limit(job, AL_LIMIT_WALL);
        return;
    }
    int64_t cpu_us = al_job_cpu_us(job) - job->cpu_before_us;
    if (cpu_us >= job->assignment.spawn.quotas.cpu_ms * 1000) {
        kill_for_limit(job, AL_LIMIT_CPU);
    } else {
        al_job_arm_limits(job, now_ns, cpu_us);
        lower_share(job, cpu_us);
        tell_usage(job, cpu_us);
    }
}
