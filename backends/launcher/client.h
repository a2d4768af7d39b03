/*
 * The half of the launcher that lives in airlockd: starts the privileged process, asks it to start
 * jobs, and reads what became of them. al_launcher_start must run before grpc_init and before any
 * thread; afterwards everything here may be called from any thread. The handle lives as long as the
 * process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/api/backend.h"
#include "backends/launcher/message.h"

struct al_launcher;

/* What the launcher said of itself when it started. Immutable. */
struct al_launcher_info {
    struct {
        bool available;
        char reason[AL_UNAVAILABLE_MAX];   /* why not */
        char version[AL_CELL_VERSION_MAX]; /* of what makes such cells */
        uint32_t layers;                   /* enum al_layer */
    } cells[AL_CELL_KINDS];                /* by enum al_cell_kind */
    const struct al_language *languages;
    size_t n_languages;
};

/* Forks and executes `path --socket FD --data-dir DIR [--config FILE]`, waits for its HELLO (at
 * most 30 s) and returns the handle. config may be NULL. */
int al_launcher_start(const char *path, const char *config, const char *data_dir,
                      struct al_launcher **ret, struct al_err *err);

/* The launcher's own check of its part of the configuration: prints to stderr, returns 0 when it is
 * good. */
int al_launcher_check_config(const char *path, const char *config, struct al_err *err);

/* Closes the launcher's socket, on which it kills every job and exits, and reaps it. */
void al_launcher_destroy(struct al_launcher *launcher);

const struct al_launcher_info *al_launcher_info(const struct al_launcher *launcher);

/* A pidfd that is readable once the launcher is dead. Borrowed. */
int al_launcher_pidfd(const struct al_launcher *launcher);

/* A started job. The fds are non-blocking; -1 where there is none. Closing `control` kills the job.
 */
struct al_launched {
    int control;
    int terminal_fd; /* a socket over which a terminal's master will come; -1: the job has none */
    int stdin_fd;
    int stdout_fd;
    int stderr_fd;
    int artifacts_fd; /* frames, see artifact_frame.h; -1 when the job asked for none */
    int compile_fd;   /* what a compile step prints; -1 when the language has none */
};

/* Starts the job in a cell of `kind` and returns once the launcher has answered. Nothing is left on
 * failure. */
int al_launcher_spawn(struct al_launcher *launcher, enum al_cell_kind kind,
                      const struct al_job_spec *spec, struct al_launched *ret, struct al_err *err);

void al_launched_close(struct al_launched *job);
