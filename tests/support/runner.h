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
    AL_TEST_CELLS = AL_TEST_LOCAL | AL_TEST_NATIVE,
    AL_TEST_ALL = AL_TEST_ECHO | AL_TEST_CELLS,
};
#define AL_TEST_BACKENDS 3

/* Starts the launcher with every backend on; fails the process with a message when that is
 * impossible. */
void al_test_start(void);
/* The same with more lines of configuration, and whether the backends are available or not. */
void al_test_start_with(const char *config_more);
void al_test_stop(void);
struct al_backend *al_test_backend_of(enum al_test_backend bit);

/* On an emulated machine, which AIRLOCK_TEST_SLOW says: fewer rounds, longer limits. */
bool al_test_is_slow(void);

/* A spec with the default quotas (more time where it is slow) and code in `language`. */
struct al_job_spec al_test_spec(const struct al_backend *backend, const char *language,
                                const char *code);

struct al_test_run {
    int rc;
    struct al_err err;
    struct al_result result;
    struct al_buf out[2]; /* by al_channel */
    int started;          /* how often the sink was told */
    int64_t took_ms;
};

/* Where the callers of jobs that run at once wait for each other. */
struct al_test_meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned expected, come;
};

/* What the caller does while the job runs; each may be left 0. */
struct al_test_caller {
    struct al_test_meeting *meeting; /* gone to at the first byte of output, or the job's end;
                                        whatever else there is to do comes after it */
    int64_t cancel_after_ms;         /* from the start of the program; 0: never */
    bool cancel_on_output;           /* as soon as the first byte has come */
    size_t sink_room;                /* the sink takes this much, then nothing; 0: everything */
    int64_t room_after_ms;           /* then everything again */
    const char *stdin_text;          /* pushed once the program has started */
    bool stdin_on_output;            /* only at the first byte of output */
    bool stdin_eof;
    int signal_on_output;                   /* sent at the first byte */
    struct al_terminal_size size_on_output; /* likewise */
};

void al_test_run(struct al_backend *backend, const struct al_job_spec *spec,
                 const struct al_test_caller *caller, struct al_test_run *ret);
void al_test_run_finish(struct al_test_run *run);

/* Processes of the machine whose command line contains the text. */
int al_test_count_processes(const char *text);
