#include "backends/launcher/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/api/job_spec.h"
#include "backends/base/cleanup.h"

#define OPEN_TRIES 100

const uint64_t al_beneath_flags = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

/* EAGAIN: a ".." while anything on the machine was mounted or renamed; asking again gives the
 * answer. */
int al_beneath_open(int dir, const char *path, uint64_t flags, mode_t mode, uint64_t resolve)
{
    const struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    int fd;
    int tries = 0;
    do {
        fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    } while (fd < 0 && errno == EAGAIN && ++tries < OPEN_TRIES);
    return fd;
}

int al_beneath_make_parents(int dir, const char *path, struct al_err *err)
{
    char at[AL_PATH_MAX];
    if (strlen(path) >= sizeof at) {
        return al_err_set(err, AL_ERR_INTERNAL, "a file's path is too long");
    }
    memcpy(at, path, strlen(path) + 1);
    for (char *slash = at; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        if (mkdirat(dir, at, 0755) < 0 && errno != EEXIST) {
            return al_err_errno(err, errno, "cannot make the folder of file '%s'", path);
        }
        *slash = '/';
    }
    return 0;
}

int al_beneath_create(int dir, const char *path, mode_t mode, struct al_err *err)
{
    int rc = al_beneath_make_parents(dir, path, err);
    if (rc < 0) {
        return rc;
    }
    al_auto_close int fd =
        al_beneath_open(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode, al_beneath_flags);
    if (fd < 0) {
        return al_err_errno(err, errno, "cannot make the file '%s'", path);
    }
    if (fchmod(fd, mode) < 0) { /* what the request says, whatever the umask is */
        return al_err_errno(err, errno, "cannot set the mode of the file '%s'", path);
    }
    return al_steal_fd(&fd);
}

int al_beneath_open_folder(int dir, const char *path, bool make, uint64_t resolve,
                           struct al_err *err)
{
    if (make && strchr(path, '/')) {
        int rc = al_beneath_make_parents(dir, path, err);
        if (rc < 0) {
            return rc;
        }
        if (mkdirat(dir, path, 0755) < 0 && errno != EEXIST) {
            return al_err_errno(err, errno, "cannot make the folder %s", path);
        }
    }
    int fd = al_beneath_open(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, resolve);
    return fd < 0 ? al_err_errno(err, errno, "cannot open the folder %s", path) : fd;
}
