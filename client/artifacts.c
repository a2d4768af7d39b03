#include "client/artifacts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"

#define TEMPORARY_NAME_MAX 40

static int open_beneath(int folder, const char *name, uint64_t flags, uint64_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC, .mode = mode, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    long fd = syscall(SYS_openat2, folder, name, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

int al_artifacts_open_folder(const char *path, struct al_err *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "%s", path);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? al_err_errno(err, errno, "%s", path) : fd;
}

/* One component: mkdirat() follows nothing there, and what stands in its place is only opened. */
static int enter_folder(int parent, const char *name)
{
    if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST) {
        return -errno;
    }
    return open_beneath(parent, name, O_RDONLY | O_DIRECTORY, 0);
}

/* The folder of the path's last component, which it returns too. */
static int enter_parents(int folder, char *path, int *ret_parent, const char **ret_name)
{
    al_auto_close int current = open_beneath(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    if (current < 0) {
        return current;
    }
    for (char *slash = strchr(path, '/'); slash; slash = strchr(path, '/')) {
        *slash = '\0';
        if (*path == '\0') {
            return -EXDEV;
        }
        int next = enter_folder(current, path);
        if (next < 0) {
            return next;
        }
        close(current);
        current = next;
        path = slash + 1;
    }
    *ret_parent = al_steal_fd(&current);
    *ret_name = path;
    return 0;
}

/* The rename would replace a link, not follow it; but a link there is somebody's, and stays. */
static int check_target(int parent, const char *name)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (S_ISREG(st.st_mode)) {
        return 0;
    }
    if (strcmp(name, "..") == 0) {
        return -EXDEV;
    }
    return S_ISLNK(st.st_mode) ? -ELOOP : S_ISDIR(st.st_mode) ? -EISDIR : -EEXIST;
}

static int write_file(int parent, const char *name, const Airlock__V1__Artifact *artifact,
                      bool replace)
{
    uint64_t random;
    char temporary[TEMPORARY_NAME_MAX];
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        return -EIO;
    }
    snprintf(temporary, sizeof temporary, ".airlock-%016llx", (unsigned long long)random);
    mode_t mode = artifact->mode ? artifact->mode & 0777 : 0644;
    al_auto_close int fd =
        open_beneath(parent, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (fd < 0) {
        return fd;
    }
    int rc = al_io_write_full(fd, artifact->content.data, artifact->content.len);
    unsigned flags = replace ? 0 : RENAME_NOREPLACE;
    if (rc == 0 && renameat2(parent, temporary, parent, name, flags) < 0) {
        rc = -errno;
    }
    if (rc < 0) {
        unlinkat(parent, temporary, 0);
    }
    return rc;
}

static int explain(int rc, const char *path, bool replace, struct al_err *err)
{
    if (rc == -EEXIST && !replace) {
        return al_err_set(err, AL_ERR_INTERNAL, "%s: is there already (--out DIR replaces files)",
                          path);
    }
    switch (-rc) {
    case EXDEV:
        return al_err_set(err, AL_ERR_INTERNAL, "%s: refused: it leaves the folder", path);
    case ELOOP:
        return al_err_set(err, AL_ERR_INTERNAL, "%s: refused: a symbolic link is in its way", path);
    case EEXIST:
        return al_err_set(err, AL_ERR_INTERNAL, "%s: refused: what is there is not a regular file",
                          path);
    default:
        return al_err_errno(err, -rc, "%s", path);
    }
}

/* `path` is cut into its components on the way. */
static int write_beneath(int folder, char *path, const Airlock__V1__Artifact *artifact,
                         bool replace)
{
    al_auto_close int parent = -1;
    const char *name;
    int rc = enter_parents(folder, path, &parent, &name);
    rc = rc < 0 ? rc : check_target(parent, name);
    return rc < 0 ? rc : write_file(parent, name, artifact, replace);
}

int al_artifacts_write(int folder, const Airlock__V1__Artifact *artifact, bool replace,
                       struct al_err *err)
{
    char *path = strdup(artifact->path);
    int rc = path ? write_beneath(folder, path, artifact, replace) : -ENOMEM;
    free(path);
    return rc < 0 ? explain(rc, artifact->path, replace, err) : 0;
}
