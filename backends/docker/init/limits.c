#include "backends/docker/init/limits.h"

#include <unistd.h>

#define CHECK_MIN_NS INT64_C(2000000) /* below a scheduler tick nothing is gained */
#define CHECK_MAX_NS INT64_C(1000000000)
#define CHECK_NEW_NS INT64_C(100000000) /* the most while a job is new */

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

void al_limits_start(struct al_limits *l, const struct al_container_job *job, int64_t now_ns,
                     int64_t cpu_us)
{
    *l = (struct al_limits){.started_ns = now_ns,
                            .wall_ns = now_ns + job->wall_ms * 1000000,
                            .cpu_before_us = cpu_us,
                            .cpu_max_us = job->cpu_ms * 1000,
                            .told_ns = now_ns,
                            .next_ns = now_ns};
}

int64_t al_limits_used_us(const struct al_limits *l, int64_t cpu_us)
{
    return cpu_us > l->cpu_before_us && l->started_ns > 0 ? cpu_us - l->cpu_before_us : 0;
}

/* When the CPU limit could be met at the earliest with every core busy, and whenever the job has
 * become twice as old; at the wall limit in any case. */
enum al_limit al_limits_check(struct al_limits *l, int64_t now_ns, int64_t cpu_us)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t used_us = al_limits_used_us(l, cpu_us);
    if (now_ns >= l->wall_ns) {
        return AL_LIMIT_WALL;
    }
    if (used_us >= l->cpu_max_us) {
        return AL_LIMIT_CPU;
    }
    int64_t left_ns = (l->cpu_max_us - used_us) * 1000 / (cores > 0 ? cores : 1);
    int64_t most_ns = clamp(now_ns - l->started_ns, CHECK_NEW_NS, CHECK_MAX_NS);
    int64_t next_ns = now_ns + clamp(left_ns, CHECK_MIN_NS, most_ns);
    l->next_ns = next_ns < l->wall_ns ? next_ns : l->wall_ns;
    return AL_LIMIT_NONE;
}

int64_t al_limits_news_us(struct al_limits *l, int64_t cpu_us)
{
    int64_t used_us = al_limits_used_us(l, cpu_us);
    if (used_us <= l->cpu_told_us || l->next_ns - l->told_ns < CHECK_MAX_NS) {
        return 0;
    }
    l->told_ns = l->next_ns;
    l->cpu_told_us = used_us;
    return used_us;
}
