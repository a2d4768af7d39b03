#include "tests/bench/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "tests/bench/die.h"

#define PATH_BYTES 128
#define ARGV_MAX   48
#define ENV_COUNT  5

/* Everything that a spawn needs, made before it is measured. */
struct place {
    char dir[PATH_BYTES];
    char code[PATH_BYTES];
    char output[PATH_BYTES];
    char *compile[ARGV_MAX];
    char *argv[ARGV_MAX];
    char *env[ENV_COUNT + 1];
};

struct al_plain {
    const struct al_bench_program *program;
    struct place places[AL_CONTEST_THREADS_MAX];
};

static char *format(const char *before, const char *value, const char *after)
{
    char *text;
    if (asprintf(&text, "%s%s%s", before, value, after) < 0) {
        al_bench_die("out of memory");
    }
    return text;
}

static char *expand(const struct place *place, const char *word)
{
    const char *at = strchr(word, '{');
    const char *end = at ? strchr(at, '}') : NULL;
    if (!end) {
        return format(word, "", "");
    }
    al_auto_free char *before = strndup(word, (size_t)(at - word));
    const char *path = at[1] == 'c' ? place->code : at[1] == 'd' ? place->dir : place->output;
    return format(before ? before : "", path, end + 1);
}

/* How many. */
static size_t expand_all(const struct place *place, const char *const *words, char **ret)
{
    size_t n = 0;
    for (; words && words[n]; n++) {
        ret[n] = expand(place, words[n]);
    }
    return n;
}

static void prepare(struct place *place, const struct al_bench_program *program, const char *folder,
                    const char *const *before, unsigned worker)
{
    snprintf(place->dir, sizeof place->dir, "%s/%s-%u", folder, program->language, worker);
    snprintf(place->code, sizeof place->code, "%.100s/%s", place->dir, program->code_file);
    snprintf(place->output, sizeof place->output, "%.100s/output.js", place->dir);
    if (mkdir(place->dir, 0700) < 0) {
        al_bench_die("mkdir %s: %s", place->dir, strerror(errno));
    }
    al_auto_close int fd = open(place->code, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || al_io_write_full(fd, program->code, strlen(program->code)) < 0) {
        al_bench_die("cannot write %s", place->code);
    }
    expand_all(place, program->compile, place->compile);
    size_t n = expand_all(place, before, place->argv);
    expand_all(place, program->argv, place->argv + n);
    char *const env[ENV_COUNT] = {format("PATH=", "/usr/local/bin:/usr/bin:/bin", ""),
                                  format("HOME=", place->dir, ""),
                                  format("TMPDIR=", place->dir, ""), format("LANG=", "C.UTF-8", ""),
                                  format("TZ=", "UTC", "")};
    memcpy(place->env, env, sizeof env);
}

struct al_plain *al_plain_create(const struct al_bench_program *program, const char *folder)
{
    return al_plain_create_in(program, folder, NULL);
}

struct al_plain *al_plain_create_in(const struct al_bench_program *program, const char *folder,
                                    const char *const *before)
{
    struct al_plain *plain = calloc(1, sizeof *plain);
    if (!plain) {
        al_bench_die("out of memory");
    }
    plain->program = program;
    for (unsigned i = 0; i < AL_CONTEST_THREADS_MAX; i++) {
        prepare(&plain->places[i], program, folder, before, i);
    }
    return plain;
}

static void free_all(char **strings)
{
    for (size_t i = 0; strings[i]; i++) {
        free(strings[i]);
    }
}

void al_plain_destroy(struct al_plain *plain)
{
    if (!plain) {
        return;
    }
    for (unsigned i = 0; i < AL_CONTEST_THREADS_MAX; i++) {
        struct place *place = &plain->places[i];
        unlink(place->code);
        unlink(place->output);
        rmdir(place->dir);
        free_all(place->compile);
        free_all(place->argv);
        free_all(place->env);
    }
    free(plain);
}

static size_t read_all(int fd, char *data, size_t size)
{
    size_t n = 0;
    for (ssize_t got; n < size && (got = TEMP_FAILURE_RETRY(read(fd, data + n, size - n))) > 0;) {
        n += (size_t)got;
    }
    return n;
}

/* Runs one program to its end; its output is read, its standard error dropped. */
static size_t spawn(const struct place *place, char *const *argv, char *output, size_t size)
{
    int out[2];
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_t actions;
    if (pipe2(out, O_CLOEXEC) < 0) {
        al_bench_die("pipe: %s", strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, place->dir);
    int rc = posix_spawn(&pid, argv[0], &actions, NULL, argv, place->env);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    size_t n = rc == 0 ? read_all(out[0], output, size) : 0;
    close(out[0]);
    if (rc != 0 || TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid || status != 0) {
        al_bench_die("plain spawn of %s: %s, wait status %d", argv[0], strerror(rc), status);
    }
    return n;
}

void al_plain_run(void *arg, unsigned worker)
{
    const struct al_plain *plain = arg;
    const struct place *place = &plain->places[worker];
    char output[64];
    if (place->compile[0]) {
        spawn(place, place->compile, output, sizeof output);
    }
    size_t n = spawn(place, place->argv, output, sizeof output);
    if (n != strlen(AL_BENCH_OUTPUT) || memcmp(output, AL_BENCH_OUTPUT, n) != 0) {
        al_bench_die("plain spawn of %s printed something else", place->argv[0]);
    }
}
