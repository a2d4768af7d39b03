/* A job's wall and CPU limits, as its init keeps them. Pure. */
#pragma once

#include "backends/api/result.h"
#include "backends/docker/job.h"

struct al_limits {
    int64_t started_ns;
    int64_t wall_ns; /* when it ends */
    int64_t cpu_before_us;
    int64_t cpu_max_us;
    int64_t cpu_told_us;
    int64_t told_ns;
    int64_t next_ns; /* when to look again */
};

/* The first program of the job begins. */
void al_limits_start(struct al_limits *l, const struct al_container_job *job, int64_t now_ns,
                     int64_t cpu_us);

/* WALL or CPU once it is met; else NONE, and `next_ns` says when to ask again. `cpu_us` is the
 * container's. */
enum al_limit al_limits_check(struct al_limits *l, int64_t now_ns, int64_t cpu_us);

/* What of that is the job's. */
int64_t al_limits_used_us(const struct al_limits *l, int64_t cpu_us);

/* The same if it is worth a message (about once a second while it grows), else 0. */
int64_t al_limits_news_us(struct al_limits *l, int64_t cpu_us);
