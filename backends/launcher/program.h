/* The program's process between its assignment and exec, for program.c and unpack.c only. One
 * process, one program: nothing of it is ever freed. */
#pragma once

#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/cell.h"

#define AL_PROGRAM_PATH_BYTES (AL_WORKDIR_MAX + 128)
#define AL_PROGRAM_ENV_BASE   8 /* variables that every program gets */

struct al_program {
    const struct al_cell_plan *plan;
    enum al_role role;
    struct al_assignment assignment;
    const struct al_runtime *runtime;
    const char *prefix; /* before every path of the sandbox: "" in a native cell */
    char workdir[AL_PROGRAM_PATH_BYTES];
    char code_path[AL_PROGRAM_PATH_BYTES + AL_RUNTIME_NAME_MAX];
    char output_path[AL_PROGRAM_PATH_BYTES + AL_RUNTIME_NAME_MAX];
    char inputs_path[AL_PROGRAM_PATH_BYTES];
    bool has_inputs;
    const char *args[AL_ARGS_MAX];
    size_t n_args;
    char *env[AL_ENV_MAX + AL_PROGRAM_ENV_BASE + 1]; /* NAME=VALUE, NULL behind the last */
    size_t n_env;
};

/* The last one of a name wins. -ENOMEM, also when there are too many. */
int al_program_add_env(struct al_program *p, const char *name, const char *value);

/* In a process inside of a cell that has nothing but its assignment, which is in `p`: becomes what
 * that says. Its mark is written to `mark_fd`, what fails to `status_fd`; both end with exec. */
_Noreturn void al_program_become(struct al_program *p, const int fds[AL_IO_FDS_MAX], int mark_fd,
                                 int status_fd);

/* Reads the bundle, as the job's user: arguments and environment into `p`, and if it is the cell's
 * first, code, files and inputs into the sandbox. Makes the workdir the current one. */
int al_program_unpack(struct al_program *p, int bundle_fd, struct al_err *err);
