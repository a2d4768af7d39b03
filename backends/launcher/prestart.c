#include "backends/launcher/prestart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/buf.h"
#include "backends/base/cleanup.h"
#include "backends/base/io.h"

/* As in the scripts. Behind all that an interpreter opens for itself, which has the numbers then
 * that it always has; below the 64 for which a table of descriptors has room at least. */
#define START_FD    63
#define START_BYTES (2u << 20) /* as much as exec would take */

/* A file of the source tree as a string. */
#define EMBED(name, path)                                                       \
    __asm__(".pushsection .rodata\n" #name ":\n.incbin \"" path "\"\n.byte 0\n" \
            ".popsection\n");                                                   \
    extern const char name[] __attribute__((visibility("hidden")))

EMBED(al_prestart_python, "backends/launcher/prestart/python.py");
EMBED(al_prestart_node, "backends/launcher/prestart/node.js");

static int write_script(const char *root, const char *path, const char *text, struct al_err *err)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    al_auto_close int fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : al_io_write_full(fd, text, strlen(text));
    return rc < 0 ? al_err_errno(err, -rc, "cannot make %s", full) : 0;
}

int al_prestart_install(const char *root, struct al_err *err)
{
    static const char *const folders[] = {AL_PRESTART_DIR, AL_PRESTART_DIR "/python"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char full[256];
        snprintf(full, sizeof full, "%s%s", root, folders[i]);
        if (mkdir(full, 0755) < 0) {
            return al_err_errno(err, errno, "mkdir %s", full);
        }
    }
    int rc =
        write_script(root, AL_PRESTART_DIR "/python/sitecustomize.py", al_prestart_python, err);
    return rc < 0 ? rc : write_script(root, AL_PRESTART_DIR "/node.js", al_prestart_node, err);
}

static int place_start_pipe(int start_fd, int *status_fd, struct al_err *err)
{
    if (*status_fd == START_FD) { /* the old one is replaced below */
        int moved = fcntl(*status_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (moved < 0) {
            return al_err_errno(err, errno, "cannot move an fd");
        }
        *status_fd = moved;
    }
    if (start_fd == START_FD ? fcntl(start_fd, F_SETFD, 0) < 0 : dup2(start_fd, START_FD) < 0) {
        return al_err_errno(err, errno, "the start pipe");
    }
    return 0;
}

int al_prestart_prepare(struct al_program *p, const char **argv, size_t n, int *status_fd,
                        struct al_err *err)
{
    int rc = place_start_pipe(p->plan->start[0], status_fd, err);
    if (rc < 0) {
        return rc;
    }
    if (p->runtime->prestart == AL_PRESTART_PYTHON) {
        return al_program_add_env(p, "PYTHONPATH", AL_PRESTART_DIR "/python") < 0
                   ? al_err_errno(err, ENOMEM, "environment")
                   : 0;
    }
    if (chdir(AL_PRESTART_DIR) < 0) { /* the script goes to the program's folder */
        return al_err_errno(err, errno, "chdir %s", AL_PRESTART_DIR);
    }
    memmove(argv + 3, argv + 1, n * sizeof *argv); /* the NULL behind the last too */
    argv[1] = "--require";
    argv[2] = AL_PRESTART_DIR "/node.js";
    return 0;
}

/* The whole length, the number of arguments, they, and NAME=VALUE; each text ends with a NUL. */
static int pack(const struct al_program *p, struct al_buf *buf)
{
    char count[32];
    uint64_t len = 0;
    int rc = al_buf_append(buf, &len, sizeof len);
    snprintf(count, sizeof count, "%zu", p->n_args);
    rc = rc < 0 ? rc : al_buf_append(buf, count, strlen(count) + 1);
    for (size_t i = 0; rc == 0 && i < p->n_args; i++) {
        rc = al_buf_append(buf, p->args[i], strlen(p->args[i]) + 1);
    }
    for (size_t i = 0; rc == 0 && i < p->n_env; i++) {
        rc = al_buf_append(buf, p->env[i], strlen(p->env[i]) + 1);
    }
    if (rc == 0) {
        len = buf->len;
        memcpy(buf->data, &len, sizeof len);
    }
    return rc;
}

int al_prestart_go(const struct al_program *p, struct al_err *err)
{
    struct al_buf buf = {.max = START_BYTES};
    int rc = pack(p, &buf);
    rc = rc < 0 ? rc : al_io_write_full(p->plan->start[1], buf.data, buf.len);
    al_buf_finish(&buf);
    return rc < 0 ? al_err_errno(err, -rc, "cannot start the program") : 0;
}
