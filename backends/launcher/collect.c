/*
 * Theory of operation. The program has ended, but what it started may still run. So the collector
 * first kills all that it may kill in its pid namespace: everything of the job's user but itself,
 * and nothing else, init being another user's. Once nothing is left, no name and no size changes
 * any more, and what a walk through the workdir finds is what is sent: the files in the order of
 * their paths, each as one frame, as long as there are bytes left. It reads in pieces and holds
 * nothing but paths, since its memory is the job's, which may be full of the very files. It is not
 * dumpable, so that what it kills cannot take it over before.
 */
#include "backends/launcher/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/io.h"
#include "backends/launcher/artifact_frame.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/child.h"
#include "backends/launcher/collect_walk.h"

#define KILL_WAIT_NS  (2 * (int64_t)1000000000)
#define KILL_PAUSE_US 200
#define CPU_MAX_S     2 /* hostile globs over hostile names: nobody is charged for it */
#define PIECE_BYTES   (64 << 10)

struct globs {
    struct al_glob of[AL_ARTIFACT_GLOBS_MAX];
    size_t n;
};

static int set_limits(struct al_err *err)
{
    const struct rlimit cpu = {CPU_MAX_S, CPU_MAX_S};
    if (setrlimit(RLIMIT_CPU, &cpu) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0) {
        return al_err_errno(err, errno, "cannot limit the collector");
    }
    return 0;
}

/* The kernel lets no fork slip by such a kill, so that a second one only finds who still dies. */
static int kill_others(struct al_err *err)
{
    int64_t until_ns = al_now_ns() + KILL_WAIT_NS;
    while (kill(-1, SIGKILL) == 0) {
        if (al_now_ns() > until_ns) {
            return al_err_set(err, AL_ERR_INTERNAL, "what the program started does not die");
        }
        usleep(KILL_PAUSE_US);
    }
    return errno == ESRCH ? 0 : al_err_errno(err, errno, "kill");
}

/* They point into the mapping, which stays. */
static int read_globs(int bundle, struct globs *ret, struct al_err *err)
{
    ssize_t size = al_bundle_check_fd(bundle);
    void *data =
        size < 0 ? MAP_FAILED : mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, bundle, 0);
    if (data == MAP_FAILED) {
        return al_err_errno(err, errno, "cannot map the job's bundle");
    }
    struct al_bundle_reader reader = {.data = data, .left = (size_t)size};
    struct al_bundle_item item;
    int rc;
    while ((rc = al_bundle_next(&reader, &item)) > 0) {
        if (item.type == AL_BUNDLE_ARTIFACT && ret->n < AL_ARTIFACT_GLOBS_MAX &&
            al_glob_parse((const char *)item.data, &ret->of[ret->n]) == 0)
        {
            ret->n++;
        }
    }
    return rc < 0 ? al_err_set(err, AL_ERR_INTERNAL, "the job's bundle is malformed") : 0;
}

/* The program may have put anything in its place. */
static int open_workdir(const struct al_collect *c)
{
    const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                                 .resolve =
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    al_auto_close int root = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? -1 : (int)syscall(SYS_openat2, root, c->workdir, &how, sizeof how);
}

static int send_head(int out, const struct al_artifact_frame *frame, const char *path)
{
    char data[sizeof *frame + AL_ARTIFACT_PATH_MAX];
    memcpy(data, frame, sizeof *frame);
    memcpy(data + sizeof *frame, path, frame->path_len);
    return al_io_write_full(out, data, sizeof *frame + frame->path_len);
}

static int send_content(int out, int fd, uint64_t len)
{
    static uint8_t piece[PIECE_BYTES];
    while (len > 0) {
        size_t n = len < sizeof piece ? (size_t)len : sizeof piece;
        int rc = al_io_read_full(fd, piece, n);
        rc = rc < 0 ? rc : al_io_write_full(out, piece, n);
        if (rc < 0) {
            return rc;
        }
        len -= n;
    }
    return 0;
}

/* 1 when it was sent, 0 when there is nothing to be had of it. */
static int send_file(int out, int workdir, const char *path, uint64_t *bytes_left)
{
    struct stat st;
    al_auto_close int fd = al_collect_open(workdir, path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (st.st_size > 0 && *bytes_left == 0)) {
        return 0;
    }
    uint64_t size = (uint64_t)st.st_size;
    const struct al_artifact_frame frame = {.type = AL_ARTIFACT_FRAME_FILE,
                                            .mode = st.st_mode & 0777,
                                            .path_len = (uint32_t)strlen(path),
                                            .truncated = size > *bytes_left,
                                            .len = size < *bytes_left ? size : *bytes_left};
    *bytes_left -= frame.len;
    int rc = send_head(out, &frame, path);
    rc = rc < 0 ? rc : send_content(out, fd, frame.len);
    return rc < 0 ? rc : 1;
}

/* Without its end where that fails: airlockd then knows that there was more. */
static int send_found(const struct al_collect *c, int workdir, struct al_found *found)
{
    uint64_t bytes_left = c->bytes_max;
    for (size_t i = 0; i < found->n; i++) {
        int rc = send_file(c->out, workdir, found->paths[i], &bytes_left);
        if (rc < 0) {
            return rc;
        }
        if (rc == 0) {
            al_found_omit(found);
        }
    }
    const struct al_artifact_frame end = {.type = AL_ARTIFACT_FRAME_END, .len = found->omitted};
    return send_head(c->out, &end, "");
}

static int collect(const struct al_collect *c, const struct globs *globs, struct al_err *err)
{
    struct al_found found = {.n = 0};
    al_auto_close int workdir = open_workdir(c);
    int rc = 0;
    if (workdir >= 0) {
        rc = al_collect_walk(workdir, globs->of, globs->n, &found);
    } else if (errno != ENOENT) {
        al_found_omit(&found);
    }
    rc = rc < 0 ? rc : send_found(c, workdir, &found);
    al_found_finish(&found);
    return rc < 0 ? al_err_errno(err, -rc, "cannot send artifacts") : 0;
}

void al_collect_main(const struct al_collect *c)
{
    static struct globs globs; /* large, and this process is its only user */
    struct al_err err = {0};
    int keep[] = {c->out, c->bundle, c->status_fd};
    al_child_keep_fds(keep, sizeof keep / sizeof keep[0]);
    int rc = set_limits(&err);
    rc = rc < 0 ? rc : kill_others(&err);
    rc = rc < 0 ? rc : read_globs(c->bundle, &globs, &err);
    rc = rc < 0 ? rc : collect(c, &globs, &err);
    if (rc < 0) {
        al_child_fail(c->status_fd, &err);
    }
    _exit(0);
}
