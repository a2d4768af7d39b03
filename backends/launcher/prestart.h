/*
 * Interpreters that are started before their program is known. The interpreter runs with its argv,
 * environment and folder as always, but finds a script of ours (prestart/) on its way, which blocks
 * in a read until the setter writes the program's arguments and environment to the start pipe. Then
 * it goes on to the code's file, which the setter has put there in the meantime.
 *
 * What a program can see of it, and all that it can, as far as tests/differential knows:
 * - /proc/self/cmdline and environ are the interpreter's own, without the job's arguments and
 *   variables. What repeats them shows it: node's process.report, what C code finds by
 *   Py_GetArgcArgv and Py_GetPath.
 * - The process is older than the job, so that clocks which count from its start have gone on.
 * - What python's garbage collector has counted, which can be the same.
 * - What a bare `declare -p` has of bash's PIPESTATUS, BASH_ARGC and SECONDS as long as no command
 * has been run and nobody has asked: they have their first value already, "0".
 * - Before node 20: process.moduleLoadList, and that the pool of small Buffers is begun.
 *
 * The rest is as if it had been started for the job, hash seed and address layout fresh for each.
 */
#pragma once

#include "backends/launcher/program.h"

#define AL_PRESTART_DIR "/.airlock" /* in a native cell's root: the scripts */

/* In the launcher, once: puts the scripts below `root`, which is writable as yet, and asks each
 * python for their bytecode. */
int al_prestart_install(const char *root, const struct al_cells_config *config, struct al_err *err);

/* The interpreter's side, in its cell as the job's user, right before exec: `argv` (`n` words, with
 * room for two more) and `p` get what makes it find the script, and the start pipe its number,
 * behind which *status_fd is moved. */
int al_prestart_prepare(struct al_program *p, const char **argv, size_t n, int *status_fd,
                        struct al_err *err);

/* The setter's side: tells the interpreter its arguments and environment. */
int al_prestart_go(const struct al_program *p, struct al_err *err);
