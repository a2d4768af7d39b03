#include "tests/bench/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "tests/bench/die.h"

#define PIPE_BYTES (512 << 10) /* as the launcher makes it */

static pid_t spawn_bash(const char *code, int out)
{
    char *const argv[] = {(char *)"/bin/bash", (char *)"-c", (char *)code, NULL};
    char *const env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    int rc = posix_spawn(&pid, argv[0], &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0) {
        al_bench_die("bash: %s", strerror(rc));
    }
    return pid;
}

static size_t read_all(int fd)
{
    al_auto_free char *data = malloc(AL_FLOOR_CHUNK_BYTES);
    size_t n = 0;
    for (ssize_t got; data && (got = TEMP_FAILURE_RETRY(read(fd, data, AL_FLOOR_CHUNK_BYTES))) > 0;)
    {
        n += (size_t)got;
    }
    return n;
}

static void *run_program(void *arg)
{
    const struct al_bench_pipe *p = arg;
    int out[2];
    int status = -1;
    if (pipe2(out, O_CLOEXEC) < 0 || fcntl(out[0], F_SETPIPE_SZ, PIPE_BYTES) < 0) {
        al_bench_die("pipe: %s", strerror(errno));
    }
    pid_t pid = spawn_bash(p->code, out[1]);
    close(out[1]);
    size_t n = read_all(out[0]);
    close(out[0]);
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) != pid || status != 0 || n != p->bytes) {
        al_bench_die("%s: printed %zu bytes, wait status %d", p->code, n, status);
    }
    return NULL;
}

void al_bench_pipe_and_floor(void *arg, unsigned worker)
{
    (void)worker;
    struct al_bench_pipe *p = arg;
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_program, p) != 0) {
        al_bench_die("no thread");
    }
    al_floor_stream(p->floor, p->bytes);
    pthread_join(thread, NULL);
}
