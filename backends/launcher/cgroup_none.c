/* Where no group can be had and the configuration does without: nothing is limited or measured. */
#include <errno.h>
#include <unistd.h>

#include "backends/launcher/cgroup_internal.h"

static int do_nothing(const struct al_cgroups *groups, const char *name, struct al_err *err)
{
    (void)groups, (void)name, (void)err;
    return 0;
}

static int join_none(const struct al_cgroups *groups, const char *name, bool counted,
                     struct al_err *err)
{
    (void)counted;
    return do_nothing(groups, name, err);
}

static int limit_none(const struct al_cgroups *groups, const char *name,
                      const struct al_quotas *quotas, struct al_err *err)
{
    (void)quotas;
    return do_nothing(groups, name, err);
}

static int64_t cpu_us_none(const struct al_cgroups *groups, const char *name)
{
    return do_nothing(groups, name, NULL);
}

/* Nothing is certain. */
static bool is_empty_none(const struct al_cgroups *groups, const char *name)
{
    (void)groups, (void)name;
    return false;
}

static int open_cpu_none(const struct al_cgroups *groups, const char *name)
{
    (void)groups, (void)name;
    return -ENOENT;
}

static void share_none(const struct al_cgroups *groups, const char *name, uint32_t percent)
{
    (void)groups, (void)name, (void)percent;
}

static void usage_none(const struct al_cgroups *groups, const char *name,
                       struct al_cgroup_usage *ret)
{
    (void)groups, (void)name;
    *ret = (struct al_cgroup_usage){0};
}

static int remove_none(const struct al_cgroups *groups, const char *name)
{
    return do_nothing(groups, name, NULL);
}

static bool sweep_none(const struct al_cgroups *groups, bool folder)
{
    (void)groups, (void)folder;
    return true;
}

static const struct al_cgroup_ops al_cgroup_none_ops = {
    .name = "none",
    .make = do_nothing,
    .join = join_none,
    .limit = limit_none,
    .cpu_us = cpu_us_none,
    .open_cpu = open_cpu_none,
    .is_empty = is_empty_none,
    .share = share_none,
    .usage = usage_none,
    .remove = remove_none,
    .sweep = sweep_none,
};

void al_cgroups_init_none(struct al_cgroups *groups)
{
    for (size_t i = 0; i < groups->n_dirs; i++) { /* what a failed al_cgroups_init has made */
        rmdir(groups->dirs[i].path);
        close(groups->dirs[i].fd);
    }
    *groups = (struct al_cgroups){.ops = &al_cgroup_none_ops};
}
