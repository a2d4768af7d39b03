/*
 * Runs jobs on real backends for tests: one launcher a process, a spec with the product's defaults,
 * a sink that keeps everything, and a thread that plays the caller.
 */
#pragma once

#include <pthread.h>

#include "backends/api/backend.h"
#include "backends/base/buf.h"

enum al_test_backend {
    AL_TEST_ECHO = 1u << 0,
    AL_TEST_LOCAL = 1u << 1,
    AL_TEST_NATIVE = 1u << 2,
    AL_TEST_DOCKER = 1u << 3, /* only where a daemon is given, see al_test_start */
    AL_TEST_BUBBLEWRAP = 1u << 4,
    AL_TEST_FIREJAIL = 1u << 5,
    AL_TEST_SANDBOXES = AL_TEST_NATIVE | AL_TEST_BUBBLEWRAP | AL_TEST_FIREJAIL,
    AL_TEST_CELLS = AL_TEST_LOCAL | AL_TEST_SANDBOXES,
    AL_TEST_ALL = AL_TEST_ECHO | AL_TEST_CELLS,
};
#define AL_TEST_BACKENDS 6

/* Starts the launcher with every backend on; fails the process with a message when that is
 * impossible. With AIRLOCK_TEST_DOCKER (a daemon's address) and AIRLOCK_TEST_DOCKER_IMAGE docker is
 * one of them; tests/support/dockerd sets both. */
void al_test_start(void);
/* The same with more lines of configuration, and whether the backends are available or not. */
void al_test_start_with(const char *config_more);
void al_test_stop(void);
/* NULL: docker, and there is no daemon. */
struct al_backend *al_test_backend_of(enum al_test_backend bit);
/* What it runs with; from al_test_start on. */

/* On an emulated machine, which AIRLOCK_TEST_SLOW says: fewer rounds, longer limits. */
bool al_test_is_slow(void);

/* The launcher, and with it what it runs of itself in a cell, is built with the address sanitizer.
 */
#ifdef __SANITIZE_ADDRESS__
#define AL_TEST_IS_SANITIZED true
#else
#define AL_TEST_IS_SANITIZED false
#endif

/* A spec with the default quotas (more time where it is slow) and code in `language`. */
struct al_job_spec al_test_spec(const struct al_backend *backend, const char *language,
                                const char *code);

struct al_test_run {
    int rc;
    struct al_err err;
    struct al_result result;
    struct al_buf out[2]; /* by al_channel */
    int started;          /* how often the sink was told */
    size_t pushed;        /* bytes of stdin by PUSH and FILL */
    int64_t took_ms;
};

/* Where the callers of jobs that run at once wait for each other. */
struct al_test_meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned expected, come;
};

enum al_test_do {
    AL_DO_NOTHING,
    AL_DO_SEE,    /* waits for `text` on stdout, after what was seen so far */
    AL_DO_TYPE,   /* the n bytes of `text` are stdin; waits for room */
    AL_DO_PUSH,   /* n bytes as al_test_byte() tells them are; likewise */
    AL_DO_FILL,   /* as many of them as there is room for without the program's reading */
    AL_DO_EOF,    /* stdin ends */
    AL_DO_SIGNAL, /* the signal n */
    AL_DO_RESIZE, /* to n rows and `cols` */
    AL_DO_CANCEL,
};

/* One thing that a caller does, or waits for; nothing more once the job has ended. */
struct al_test_step {
    enum al_test_do what;
    const char *text;
    size_t n;
    uint16_t cols;
};

#define SEE(bytes)                                                 \
    {                                                              \
        .what = AL_DO_SEE, .text = (bytes), .n = sizeof(bytes) - 1 \
    }
#define TYPE(bytes)                                                 \
    {                                                               \
        .what = AL_DO_TYPE, .text = (bytes), .n = sizeof(bytes) - 1 \
    }
#define PUSH(size)                      \
    {                                   \
        .what = AL_DO_PUSH, .n = (size) \
    }
#define FILL               \
    {                      \
        .what = AL_DO_FILL \
    }
#define END_OF_STDIN      \
    {                     \
        .what = AL_DO_EOF \
    }
#define SIGNAL(signo)                      \
    {                                      \
        .what = AL_DO_SIGNAL, .n = (signo) \
    }
#define RESIZE(rows, columns)                                \
    {                                                        \
        .what = AL_DO_RESIZE, .n = (rows), .cols = (columns) \
    }
#define CANCEL               \
    {                        \
        .what = AL_DO_CANCEL \
    }

/* A list of them, at file scope. */
#define STEPS(...)                \
    (const struct al_test_step[]) \
    {                             \
        __VA_ARGS__,              \
        {                         \
            .what = AL_DO_NOTHING \
        }                         \
    }

/* The byte of PUSH and FILL with that number, over all of a caller's. */
uint8_t al_test_byte(size_t at);

/* What the caller does while the job runs; each may be left 0. */
struct al_test_caller {
    struct al_test_meeting *meeting;  /* gone to at the first byte of output, or the job's end;
                                         whatever else there is to do comes after it */
    int64_t cancel_after_ms;          /* from the start of the program; 0: never */
    bool cancel_on_output;            /* as soon as the first byte has come */
    size_t sink_room;                 /* the sink takes this much, then nothing; 0: everything */
    int64_t room_after_ms;            /* then everything again */
    const char *stdin_text;           /* pushed once the program has started */
    int signal_on_output;             /* sent at the first byte */
    int early_signal;                 /* sent before the backend is asked to run it */
    const struct al_test_step *steps; /* once the program has started, up to one that does nothing;
                                         whatever else there is to do comes before it */
};

void al_test_run(struct al_backend *backend, const struct al_job_spec *spec,
                 const struct al_test_caller *caller, struct al_test_run *ret);
void al_test_run_finish(struct al_test_run *run);

/* Processes of the machine whose command line contains the text. */
int al_test_count_processes(const char *text);

/* Ends the process with the reason; for what no test is about. */
__attribute__((noreturn)) void al_test_fail(const char *what, const char *why);
