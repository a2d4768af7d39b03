#include "tests/bench/phases.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "tests/bench/die.h"

enum phase {
    SPAWNED, /* the launcher has answered: both processes are cloned */
    STARTED, /* its message that the program was exec'd */
    OUTPUT,  /* the first byte */
    END,     /* the end of standard output */
    EXIT,    /* its message that everything is reaped */
    PROGRAM, /* exec to exit, as the launcher measured it */
    PHASES,
};

static const char *const names[PHASES] = {"spawned",       "started", "first byte",
                                          "end of output", "exit",    "program"};

struct run {
    struct al_launched job;
    int64_t start_ns;
    int64_t at_ns[PHASES];
};

static int64_t since_start(const struct run *run)
{
    return al_now_ns() - run->start_ns;
}

static void read_output(struct run *run, int *fd)
{
    char data[4096];
    ssize_t got = read(*fd, data, sizeof data);
    bool is_stdout = fd == &run->job.stdout_fd;
    if (got > 0 && is_stdout && run->at_ns[OUTPUT] == 0) {
        run->at_ns[OUTPUT] = since_start(run);
    }
    if (got == 0) {
        run->at_ns[END] = is_stdout ? since_start(run) : run->at_ns[END];
        al_close_fd(fd);
    }
}

static void read_control(struct run *run)
{
    uint8_t data[2048];
    struct al_msg_exit message;
    ssize_t got = recv(run->job.control, data, sizeof data, 0);
    if (got <= 0) {
        al_bench_die("the launcher is gone");
    }
    if (al_msg_decode_empty(AL_MSG_STARTED, data, (size_t)got) == 0) {
        run->at_ns[STARTED] = since_start(run);
    } else if (al_msg_decode_exit(data, (size_t)got, &message) == 0) {
        run->at_ns[EXIT] = since_start(run);
        run->at_ns[PROGRAM] = message.duration_us * 1000;
    }
}

static void run_once(const struct al_direct *direct, struct run *run)
{
    struct al_err err = {0};
    struct al_job_spec spec = al_direct_spec(direct);
    *run = (struct run){.start_ns = al_now_ns()};
    if (al_launcher_spawn(direct->env->launcher, AL_CELL_NATIVE, &spec, &run->job, &err) < 0) {
        al_bench_die("spawn: %s", err.text);
    }
    run->at_ns[SPAWNED] = since_start(run);
    al_close_fd(&run->job.stdin_fd);
    int *const outputs[] = {&run->job.stdout_fd, &run->job.stderr_fd, &run->job.compile_fd};
    while (run->at_ns[EXIT] == 0 || run->job.stdout_fd >= 0) {
        struct pollfd fds[4] = {{.fd = run->job.control, .events = POLLIN}};
        for (size_t i = 0; i < 3; i++) {
            fds[i + 1] = (struct pollfd){.fd = *outputs[i], .events = POLLIN};
        }
        poll(fds, 4, -1);
        if (fds[0].revents && run->at_ns[EXIT] == 0) {
            read_control(run);
        }
        for (size_t i = 0; i < 3; i++) {
            if (fds[i + 1].revents) {
                read_output(run, outputs[i]);
            }
        }
    }
    al_launched_close(&run->job);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void al_phases_print(const struct al_direct *direct, unsigned n)
{
    al_auto_free int64_t *times = calloc((size_t)n * PHASES, sizeof *times);
    if (!times) {
        al_bench_die("out of memory");
    }
    struct run run;
    for (unsigned i = 0; i < n; i++) {
        run_once(direct, &run);
        for (size_t phase = 0; phase < PHASES; phase++) {
            times[phase * n + i] = run.at_ns[phase];
        }
    }
    printf("%s:", direct->program->language);
    for (size_t phase = 0; phase < PHASES; phase++) {
        qsort(times + phase * n, n, sizeof *times, compare);
        printf("  %s %.2f ms", names[phase], (double)times[phase * n + n / 2] / 1e6);
    }
    printf("\n");
}
