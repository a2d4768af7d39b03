/* A job from the inside, for job.c and job_*.c (its life), birth.c, pool.c (cells made
 * ahead) and spawn.c (its assignment) only. */
#pragma once

#include "backends/launcher/job.h"

#define AL_STRAY_CHECK_NS 20000000 /* while a cell takes this long to end */

/* What a job waits for; each is a source of the loop while its fd is open. */
enum al_job_source_index {
    AL_JOB_CONTROL,
    AL_JOB_STATUS,
    AL_JOB_PROCESS,
    AL_JOB_SETTER,
    AL_JOB_INIT,
    AL_JOB_TIMER,
    AL_JOB_LINK, /* to a jail's warden */
    AL_JOB_COUNT,
};

struct al_job_source {
    struct al_source base;
    struct al_job *job;
};

/* A cell, and once it has one, the job that runs in it. */
struct al_job {
    struct al_jobs *jobs;
    uint32_t slot;
    char name[AL_JOB_ID_LEN +
              1]; /* of the cell's cgroups; the job's id is not known when it is made */
    struct al_cell_plan plan;
    struct al_cell cell;
    struct al_job_source sources[AL_JOB_COUNT];
    int assign_fd;   /* to the process that waits for its assignment; -1 once it has it */
    bool waiting;    /* made ahead, no job yet */
    bool has_setter; /* the interpreter was exec'd, and what starts its program was cloned */
    bool assigned;   /* counts as running */
    bool exit_said;
    bool settled;       /* its process does nothing but wait: the cell's limits may be changed */
    bool program_ended; /* as a jail's warden says */
    char tool_said[AL_ERR_TEXT_MAX / 2]; /* the begin of a jail's tool's complaints */

    struct al_assignment assignment;
    int bundle_fd;
    int callers[3];         /* our ends of the program's pipes; made with the cell */
    int compile_out;        /* the compile step's end of its pipe */
    int artifacts_out;      /* the collector's; -1 also when none are wanted */
    pid_t pid;              /* of the stage's process; 0 once it is reaped */
    pid_t setter;           /* of the process that starts the interpreter's program; likewise */
    bool started;           /* the stage has been exec'd */
    bool announced;         /* STARTED was sent */
    uint32_t early_signals; /* that came before exec; a bit each */
    bool ending;            /* init was killed on purpose */
    bool init_reaped;
    struct al_mark mark; /* of exec; all 0: none came */
    int64_t assigned_ns;
    int64_t stage_started_ns;
    int64_t wall_deadline_ns;
    int64_t collect_deadline_ns;
    uint32_t share_percent; /* of the processors, beside a new job; 0: it is new */
    int64_t cpu_told_us;    /* by the last USAGE */
    int64_t reaped_cpu_us;  /* of its processes and what they have waited for; without cgroups */
    int64_t cpu_before_us;  /* what making the cell has cost; not the program's */
    struct al_msg_exit exit;
};

void al_job_init_sources(struct al_job *job);
int al_job_add_source(struct al_job *job, enum al_job_source_index i, int fd,
                      void (*fn)(struct al_source *));

void al_job_on_control(struct al_source *source);
void al_job_on_timer(struct al_source *source);

/* Absolute, CLOCK_MONOTONIC. */
void al_job_arm_timer(struct al_job *job, int64_t at_ns);

/* Wakes when a limit can be met at the earliest; `cpu_us` is what the program has used so far. */
void al_job_arm_limits(struct al_job *job, int64_t now_ns, int64_t cpu_us);

/* What the cell's group has used in all. */
int64_t al_job_cpu_us(const struct al_job *job);

/* --- birth.c --- */

/* A cell with its first process, which waits, or starts the runtime's interpreter. NULL: nothing is
 * left, or a dying cell that releases itself. */
struct al_job *al_job_create(struct al_jobs *jobs, enum al_cell_kind kind,
                             const struct al_quotas *quotas, int32_t runtime, struct al_err *err);

/* Behind the interpreter's exec: the process that takes the assignment. */
int al_job_start_setter(struct al_job *job, struct al_err *err);

/* One more process in the cell, with the job's assignment: behind a compile step the program,
 * behind that the collector. */
int al_job_start_next(struct al_job *job, enum al_stage stage, struct al_err *err);

/* One of a job's pipes. Its user may open it again through /dev/stdout; *ret_callers does not
 * block. */
int al_job_make_pipe(const struct al_job *job, bool program_reads, int *ret_callers,
                     int *ret_programs, struct al_err *err);

/* Instead of its pipes: a socket over which the terminal's master comes. The caller's ends of
 * stdout and stderr stay, and have ended. */
int al_job_use_terminal(struct al_job *job, struct al_err *err);

/* True when the cell was made with the limits that these quotas ask of it. */
bool al_job_fits(const struct al_job *job, const struct al_quotas *quotas);

/* Lets the waiting process become the assignment's stage. */
int al_job_start_stage(struct al_job *job, struct al_err *err);

void al_job_send(struct al_job *job, const void *data, size_t len, const int *fds, size_t n);
void al_job_set_error(struct al_job *job, const char *text);
void al_job_end_cell(struct al_job *job);

/* --- job_jail.c --- */

/* The cell's process is about to become the tool: its end of the warden's link. */
int al_job_watch_link(struct al_job *job, int link_fd, struct al_err *err);

int al_job_order_stage(struct al_job *job, const int fds[AL_STAGE_FDS], struct al_err *err);
void al_job_order_signal(struct al_job *job, int signo);

/* Takes what the warden has already said; nothing where there is none. */
void al_job_hear_warden(struct al_job *job);

/* What the tool complains of is kept for the case that it fails. */
void al_job_hear_tool(struct al_job *job);

/* The tool has been reaped, and with it the warden has ended. */
void al_job_tool_ended(struct al_job *job, int wait_status);

/* --- job_collect.c --- */

/* The program has ended and artifacts are wanted: its figures are final from here on. */
void al_job_start_collector(struct al_job *job);
void al_job_watch_collector(struct al_job *job, int64_t now_ns); /* at each wake of the timer */
void al_job_collector_said(const char *text);                    /* an error, or "" */

/* --- job_children.c --- */

/* True when the program has ended by itself: it waits to be reaped, or its artifacts are collected.
 */
bool al_job_has_ended(const struct al_job *job);

/* Whether a cell that was made ahead can have a job: false also when one of its processes has died
 * and the loop has not come to it yet. */
bool al_job_can_start(const struct al_job *job);

/* Waits for children that are nobody's: a program without a filter can make some. */
void al_jobs_reap_strays(const struct al_jobs *jobs);

/* --- job_end.c --- */

/* The figures of the cell's cgroups, for EXIT. */
void al_job_read_usage(struct al_job *job);

/* If its last process was the last of its cgroups, only what held the cell is left: nobody's wait.
 */
void al_job_end(struct al_job *job);

/* When all of its processes are reaped: says what is still to be said, and releases it. */
void al_job_finish_if_dead(struct al_job *job);

/* Closes and frees everything; the job's processes are reaped or never were. */
void al_job_release(struct al_job *job);

/* --- job.c --- */

/* The job's stage has been exec'd; job->mark says when. */
void al_job_stage_started(struct al_job *job);

/* The stage has ended by itself, or was killed. */
void al_job_stage_ended(struct al_job *job, int wait_status);

/* Nothing comes of the job, and why. */
void al_job_fail(struct al_job *job, const char *text);

/* Not needed any more; its fd is closed. */
void al_job_drop_source(struct al_job *job, enum al_job_source_index i);

void al_job_watch_init(struct al_job *job);

/* Takes the fds. */
void al_job_watch_process(struct al_job *job, enum al_role role, const struct al_process *process,
                          int status_fd);
