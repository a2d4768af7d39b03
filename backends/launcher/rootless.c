#include "backends/launcher/rootless.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/io.h"
#include "backends/launcher/rootfs.h"

#define ARGS_MAX 16

static int write_self(const char *path, const char *text, struct al_err *err)
{
    int rc = al_io_write_file(AT_FDCWD, path, text);
    return rc < 0 ? al_err_errno(err, -rc, "cannot write %s", path) : 0;
}

int al_rootless_enter(int argc, char **argv, struct al_err *err)
{
    char uid_map[32], gid_map[32];
    char *args[ARGS_MAX + 2];
    snprintf(uid_map, sizeof uid_map, "0 %u 1\n", geteuid());
    snprintf(gid_map, sizeof gid_map, "0 %u 1\n", getegid());
    if (argc > ARGS_MAX) {
        return al_err_set(err, AL_ERR_INTERNAL, "too many arguments");
    }
    memcpy(args, argv, (size_t)argc * sizeof *args);
    args[argc] = (char *)"--rootless";
    args[argc + 1] = NULL;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
        return al_err_errno(err, errno, "no user namespace can be made");
    }
    /* Before its groups' map an unprivileged process has to give setgroups up. */
    int rc = write_self("/proc/self/setgroups", "deny", err);
    rc = rc < 0 ? rc : write_self("/proc/self/uid_map", uid_map, err);
    rc = rc < 0 ? rc : write_self("/proc/self/gid_map", gid_map, err);
    if (rc < 0) {
        return rc;
    }
    /* Anew, so that this memory belongs to the namespace too: whoever may look into a process that
     * is not dumpable, as is needed to enter its cell, is decided by where it was executed. */
    execv("/proc/self/exe", args);
    return al_err_errno(err, errno, "cannot execute the launcher again");
}

int al_rootless_prepare(struct al_err *err)
{
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("airlock-run", "/run", "tmpfs", MS_NOSUID | MS_NODEV,
              "mode=0755,size=1m,nr_inodes=256") < 0 ||
        mkdir(AL_RUN_DIR, 0755) < 0)
    {
        return al_err_errno(err, errno, "cannot mount a /run of its own");
    }
    return 0;
}
