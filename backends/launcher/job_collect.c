/* The last stage of a job that wants artifacts, after its program has ended by itself. */
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/launcher/collect.h"
#include "backends/launcher/job_internal.h"

#define ROOM_MB 32

/* The program's files may fill its memory limit: the collector needs some of its own. Without it a
 * full group kills the collector now and then, and artifacts are missing. */
static void make_room(const struct al_job *job)
{
    const struct al_cgroups *cgroups = job->jobs->cgroups;
    struct al_quotas quotas = job->assignment.spawn.quotas;
    struct al_err err = {0};
    quotas.memory_mb += ROOM_MB;
    quotas = al_cell_quotas(job->plan.kind, &quotas);
    if (cgroups->ops->limit(cgroups, job->name, &quotas, &err) < 0) {
        al_log_warn("no room for the collector: %s", err.text);
    }
}

/* What became of the program stays, whatever becomes of its artifacts; airlockd sees for itself
 * that they are missing. */
void al_job_start_collector(struct al_job *job)
{
    struct al_err err = {0};
    int64_t now_ns = al_now_ns();
    al_job_read_usage(job);
    make_room(job);
    job->collect_deadline_ns = now_ns + AL_COLLECT_MAX_NS;
    al_job_arm_timer(job, now_ns + AL_STRAY_CHECK_NS);
    if (al_job_start_next(job, AL_STAGE_COLLECT, &err) < 0) {
        al_job_collector_said(err.text);
        al_job_end_cell(job);
    }
}

void al_job_collector_said(const char *text)
{
    if (text[0] != '\0') {
        al_log_warn("artifacts are missing: %s", text);
    }
}

/* The collector waits until everything else of the job is gone, strays included. */
void al_job_watch_collector(struct al_job *job, int64_t now_ns)
{
    if (now_ns >= job->collect_deadline_ns) {
        al_job_end_cell(job);
        return;
    }
    al_jobs_reap_strays(job->jobs);
    al_job_arm_timer(job, now_ns + AL_STRAY_CHECK_NS);
}
