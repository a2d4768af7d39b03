/*
 * The launcher's jobs: each a cell, the stage that runs in it, its timer, and the control socket to
 * airlockd.
 */
#pragma once

#include "backends/launcher/cell.h"
#include "backends/launcher/jail.h"
#include "backends/launcher/loop.h"
#include "backends/launcher/pool.h"

struct al_job;

/* What all jobs share; filled in once by main. */
struct al_jobs {
    struct al_loop *loop;
    const struct al_cells_config *config;
    struct al_cgroups *cgroups;
    struct sock_fprog filter;
    uint32_t available[AL_CELL_KINDS]; /* 0: SPAWNs of that kind are refused */
    struct al_jail jails[AL_JAIL_TOOLS];
    int reaper_fd;
    struct al_job **slots; /* config->jobs_max; NULL is free. A slot is a pair of host uids. */
    uint32_t n_used;
    uint32_t n_running; /* of those: with an assignment */
    uint32_t next_slot;
    uint64_t next_name; /* of a cell's cgroups */
    struct al_pools pools;
};

int al_jobs_init(struct al_jobs *jobs);

/* Starts a job. Takes both fds. Whatever goes wrong is answered on the control socket (REFUSED). */
void al_jobs_spawn(struct al_jobs *jobs, const struct al_msg_spawn *spawn, int control_fd,
                   int bundle_fd);

/* Kills every job and waits for the processes to be gone; for the launcher's own end. */
void al_jobs_kill_all(struct al_jobs *jobs);
