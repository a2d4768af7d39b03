/*
 * The launcher's own reading of the configuration: [cells], [local], [maxima] and the [runtime
 * NAME] sections. airlockd's sections are passed over. Built-in runtimes come first; a section of
 * the same name replaces one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/api/job_spec.h"
#include "backends/base/err.h"
#include "backends/jail/version.h"
#include "backends/launcher/message.h"

#define AL_ARGV_MAX 24
#define AL_POOL_MAX 256
#define AL_JOBS_MAX 4096 /* the most that jobs_max may be */

struct al_words {
    char *word[AL_ARGV_MAX + 1]; /* NULL-terminated; owned by the configuration */
    size_t n;
};

#define AL_RUNTIME_NONE (-1) /* where an index of a runtime may be missing */

struct al_runtime {
    struct al_msg_runtime info; /* version: "" until it is probed */
    struct al_words argv;       /* "{code}" and "{output}" stand for the paths of those files */
    struct al_words compile;    /* n == 0: no compile step */
    enum al_prestart prestart;
};

/* A tool that starts programs; by enum al_jail_tool. */
struct al_jail_config {
    char program[256];        /* "": the backend is off */
    bool allow_known_escapes; /* also in a version that is known to let programs out */
};

struct al_cells_config {
    struct al_runtime runtimes[AL_RUNTIMES_MAX];
    size_t n_runtimes;
    struct al_words system_paths; /* what of the host a native cell sees, read-only */
    struct al_quotas maxima;
    uid_t uid_base;      /* first of the host uids that cells use */
    uint32_t jobs_max;   /* cells at once */
    uint32_t prepared;   /* cells made ahead, of native and of each tool, at most; 0: none */
    uint32_t prestarted; /* of each runtime: interpreters started ahead, at most; 0: none */
    uint32_t require;    /* enum al_layer: a backend that could have one and has not is off */
    bool rootless;       /* not of the file: an ordinary user has started us; rootless.h */
    bool allow_unsafe;   /* the local backend may run */
    struct al_jail_config jails[AL_JAIL_TOOLS];
    char cgroup_parent[256]; /* below each hierarchy's mount; "" = the launcher's own cgroup */
    struct al_text *texts;   /* what the words point into */
};

/* Fills in defaults and reads `path` (NULL: none) on top. An error names file, line, section, key
 * and the allowed range. Nothing is to be finished on failure. */
int al_cells_config_read(struct al_cells_config *config, const char *path, struct al_err *err);
void al_cells_config_finish(struct al_cells_config *config);

/* The runtime "name@version", exactly. NULL: none. */
const struct al_runtime *al_cells_config_runtime(const struct al_cells_config *config,
                                                 const char *name_at_version);
