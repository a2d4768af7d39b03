/* What the container's cgroup says of the job, and what the kernel says of the container. */
#pragma once

#include <stdint.h>

#include "backends/docker/job.h"
#include "backends/launcher/message.h"

struct al_figures {
    int dir; /* /sys/fs/cgroup; -1: there is none */
    int cpu; /* the file of the CPU time, kept open; -1: none */
    bool v2;
    uint32_t oom_kills_before;
    uint32_t pids_denied_before;
};

/* Never fails: what is not there stays unknown. The container's own start counts in nothing but the
 * memory's peak. */
void al_figures_open(struct al_figures *f);

/* Of the container so far; 0 when it is not known. */
int64_t al_figures_cpu_us(const struct al_figures *f);

/* All but the CPU time. */
void al_figures_read(const struct al_figures *f, struct al_msg_exit *ret);

/* Below the memory limit, in bytes; UINT64_MAX when it is not known. */
uint64_t al_figures_memory_left(const struct al_figures *f);

/* enum al_layer bits that are really in force around this process. */
uint32_t al_figures_layers(const struct al_figures *f, const struct al_container_job *job);
