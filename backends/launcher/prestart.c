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
#include "backends/launcher/runtime.h"

/* As in the scripts. Behind all that an interpreter opens for itself, which has the numbers then
 * that it always has; below the 64 for which a table of descriptors has room at least. */
#define START_FD    63
#define START_BYTES (2u << 20) /* as much as exec would take */

#define BASH_SCRIPT    AL_PRESTART_DIR "/bash.sh"
#define NODE_SCRIPT    AL_PRESTART_DIR "/node.js"
#define PYTHON_DIR     AL_PRESTART_DIR "/python"
#define PYTHON_SCRIPT  PYTHON_DIR "/sitecustomize.py"
#define PYTHON_CACHE   PYTHON_DIR "/__pycache__"
#define BYTECODE_BYTES (32 << 10)

/* A file of the source tree as a string. */
#define EMBED(name, path)                                                       \
    __asm__(".pushsection .rodata\n" #name ":\n.incbin \"" path "\"\n.byte 0\n" \
            ".popsection\n");                                                   \
    extern const char name[] __attribute__((visibility("hidden")))

EMBED(al_prestart_python, "backends/launcher/prestart/python.py");
EMBED(al_prestart_node, "backends/launcher/prestart/node.js");
EMBED(al_prestart_bash, "backends/launcher/prestart/bash.sh");

static int write_file(const char *root, const char *path, const void *data, size_t n,
                      struct al_err *err)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    al_auto_close int fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : al_io_write_full(fd, data, n);
    return rc < 0 ? al_err_errno(err, -rc, "cannot make %s", full) : 0;
}

/* Takes the source and its path; prints the path that the interpreter looks for its bytecode at,
 * how long that is, each with a NUL, and the bytecode, of the sort that is believed whatever the
 * times of files are. */
static const char compile_script[] =
    "import marshal, sys\n"
    "from importlib.util import MAGIC_NUMBER, cache_from_source\n"
    "path, source = sys.argv[1:]\n"
    "code = marshal.dumps(compile(source, path, 'exec', dont_inherit=True))\n"
    "code = MAGIC_NUMBER + (1).to_bytes(4, 'little') + bytes(8) + code\n"
    "where = cache_from_source(path).encode()\n"
    "sys.stdout.buffer.write(b'%s\\0%d\\0%s' % (where, len(code), code))\n";

/* Without its bytecode python compiles the script in each cell, which takes it a sixth of its whole
 * start and leaves traces. That is no reason to be without cells, though. */
static void install_bytecode(const char *root, const struct al_cells_config *config,
                             const struct al_runtime *python)
{
    static const char start[] = PYTHON_CACHE "/";
    char text[BYTECODE_BYTES];
    struct al_err ignored = {0};
    char *const argv[] = {python->argv.word[0],
                          (char *)"-I",
                          (char *)"-S",
                          (char *)"-c",
                          (char *)compile_script,
                          (char *)PYTHON_SCRIPT,
                          (char *)al_prestart_python,
                          NULL};
    ssize_t n = al_runtime_ask(config, argv, text, sizeof text);
    if (n <= 0 || strncmp(text, start, strlen(start)) != 0 || strchr(text + strlen(start), '/')) {
        return;
    }
    const char *size = text + strlen(text) + 1; /* al_runtime_ask puts a NUL behind the end */
    const char *code = size < text + n ? size + strlen(size) + 1 : text + n;
    if (code < text + n && strtol(size, NULL, 10) == text + n - code) {
        write_file(root, text, code, (size_t)(text + n - code), &ignored);
    }
}

int al_prestart_install(const char *root, const struct al_cells_config *config, struct al_err *err)
{
    static const char *const folders[] = {AL_PRESTART_DIR, PYTHON_DIR, PYTHON_CACHE};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char full[256];
        snprintf(full, sizeof full, "%s%s", root, folders[i]);
        if (mkdir(full, 0755) < 0) {
            return al_err_errno(err, errno, "mkdir %s", full);
        }
    }
    const struct {
        const char *path, *text;
    } scripts[] = {
        {PYTHON_SCRIPT, al_prestart_python},
        {NODE_SCRIPT, al_prestart_node},
        {BASH_SCRIPT, al_prestart_bash},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0] && rc == 0; i++) {
        rc = write_file(root, scripts[i].path, scripts[i].text, strlen(scripts[i].text), err);
    }
    for (size_t i = 0; i < config->n_runtimes && rc == 0 && config->prestarted > 0; i++) {
        if (config->runtimes[i].prestart == AL_PRESTART_PYTHON) {
            install_bytecode(root, config, &config->runtimes[i]);
        }
    }
    return rc;
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

static int name_script(struct al_program *p, const char *variable, const char *script,
                       struct al_err *err)
{
    return al_program_add_env(p, variable, script) < 0 ? al_err_errno(err, ENOMEM, "environment")
                                                       : 0;
}

int al_prestart_prepare(struct al_program *p, const char **argv, size_t n, int *status_fd,
                        struct al_err *err)
{
    int rc = place_start_pipe(p->plan->start[0], status_fd, err);
    if (rc < 0) {
        return rc;
    }
    if (p->runtime->prestart == AL_PRESTART_PYTHON) {
        return name_script(p, "PYTHONPATH", PYTHON_DIR, err);
    }
    if (p->runtime->prestart == AL_PRESTART_BASH) {
        return name_script(p, "BASH_ENV", BASH_SCRIPT, err);
    }
    if (chdir(AL_PRESTART_DIR) < 0) { /* the script goes to the program's folder */
        return al_err_errno(err, errno, "chdir %s", AL_PRESTART_DIR);
    }
    memmove(argv + 3, argv + 1, n * sizeof *argv); /* the NULL behind the last too */
    argv[1] = "--require";
    argv[2] = NODE_SCRIPT;
    return 0;
}

/* The whole length in ten digits, the number of arguments, that of variables, the arguments, and
 * NAME=VALUE; each text ends with a NUL. */
static int pack(const struct al_program *p, struct al_buf *buf)
{
    char counts[64], len[11] = "";
    int n = snprintf(counts, sizeof counts, "%zu%c%zu", p->n_args, '\0', p->n_env);
    int rc = al_buf_append(buf, len, sizeof len);
    rc = rc < 0 ? rc : al_buf_append(buf, counts, (size_t)n + 1);
    for (size_t i = 0; rc == 0 && i < p->n_args; i++) {
        rc = al_buf_append(buf, p->args[i], strlen(p->args[i]) + 1);
    }
    for (size_t i = 0; rc == 0 && i < p->n_env; i++) {
        rc = al_buf_append(buf, p->env[i], strlen(p->env[i]) + 1);
    }
    if (rc == 0) {
        snprintf(len, sizeof len, "%010zu", buf->len);
        memcpy(buf->data, len, sizeof len);
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
