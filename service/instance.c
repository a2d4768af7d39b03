#include "service/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

static int find_user(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct al_err *err)
{
    const struct passwd *entry = getpwnam(name);
    if (!entry) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[server] user: there is no user %s", name);
    }
    if (entry->pw_uid == 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[server] user: must not be root: only the launcher is privileged");
    }
    *ret_uid = entry->pw_uid;
    *ret_gid = entry->pw_gid;
    return 0;
}

/* A folder that was there keeps its owner and mode: it may be anybody's. */
static int make_dir(const char *path, const char *user, struct al_err *err)
{
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    if (mkdir(path, 0700) < 0) {
        return errno == EEXIST ? 0 : al_err_errno(err, errno, "cannot make the data-dir %s", path);
    }
    if (geteuid() != 0) {
        return 0;
    }
    int r = find_user(user, &uid, &gid, err);
    if (r < 0) {
        return r;
    }
    return chown(path, uid, gid) < 0 ? al_err_errno(err, errno, "cannot give %s to %s", path, user)
                                     : 0;
}

int al_instance_lock(const char *data_dir, const char *user, int *ret_fd, struct al_err *err)
{
    int r = make_dir(data_dir, user, err);
    if (r < 0) {
        return r;
    }
    al_auto_close int dir = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    al_auto_close int fd =
        dir < 0 ? -1 : openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return al_err_errno(err, errno, "cannot open %s/lock", data_dir);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK ? al_err_set(err, AL_ERR_UNAVAILABLE,
                                                 "another airlockd uses the data-dir %s", data_dir)
                                    : al_err_errno(err, errno, "cannot lock %s/lock", data_dir);
    }
    *ret_fd = al_steal_fd(&fd);
    return 0;
}

static int become(const char *user, struct al_err *err)
{
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    int r = find_user(user, &uid, &gid, err);
    if (r < 0) {
        return r;
    }
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0) {
        return al_err_errno(err, errno, "cannot become the user %s", user);
    }
    if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "dropping root's privileges did not last");
    }
    return 0;
}

int al_instance_drop_privileges(const char *data_dir, const char *user, struct al_err *err)
{
    int r = geteuid() == 0 ? become(user, err) : 0;
    if (r < 0) {
        return r;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
        return al_err_errno(err, errno, "prctl");
    }
    if (access(data_dir, W_OK | X_OK) < 0) {
        return al_err_errno(err, errno, "the data-dir %s is of no use to the user %s", data_dir,
                            user);
    }
    return 0;
}
