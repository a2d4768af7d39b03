/*
 * The command line of airlock. Parsing is strict: an option is spelled out, given a value of the
 * form that its help tells, and meant for the command; everything else is an error that names the
 * option and what is allowed. Nothing is read but the arguments. Not thread-safe (getopt).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/err.h"

enum al_command {
    AL_COMMAND_NONE, /* --help and --version need none */
    AL_COMMAND_RUN,
    AL_COMMAND_STREAM,
    AL_COMMAND_KILL,
    AL_COMMAND_BACKENDS,
    AL_COMMAND_JOBS,
    AL_COMMAND_JOB,
    AL_COMMAND_QUOTA,
    AL_COMMAND_CACHE,
    AL_COMMAND_ATTACH,
};

/* What `airlock cache` is to do. */
enum al_cache_action {
    AL_CACHE_ACTION_NONE,
    AL_CACHE_ACTION_STATS,
    AL_CACHE_ACTION_CLEAR,
};

/* NULL for AL_COMMAND_NONE. */
const char *al_command_name(enum al_command command);

/* Arguments in their order; the array is owned, the strings are argv's. */
struct al_strings {
    const char **items;
    size_t n;
};

/* What run and stream have in common, and the few that only run has. */
struct al_run_options {
    const char *language;    /* NULL: from the file's extension, or the server's default */
    const char *code;        /* of -e; NULL: see file */
    const char *file;        /* "-" is standard input */
    struct al_strings args;  /* after "--" */
    struct al_strings files; /* HOST:SANDBOX, both not empty */
    struct al_strings env;   /* NAME=VALUE, NAME not empty */
    struct al_strings hosts; /* of --allow */
    struct al_strings globs; /* of --artifact */
    const char *out;         /* where artifacts are written; NULL: they are not */
    bool keeps_files;        /* --out was not given: what is there already stays */
    const char *inputs;      /* a JSON object; NULL: none */
    const char *workdir;     /* NULL: the server's */
    const char *backend;     /* NULL: the server's */
    bool forward_stdin;      /* run, attach */
    bool tty;                /* stream, attach */
    bool no_cache;           /* run */
    bool follow;             /* run */
    bool stats;
    uint32_t memory_mb, pids, disk_mb; /* 0: the server's default, as in the next line */
    double wall_seconds, cpu_seconds;
    double linger_seconds; /* stream; 0: the job ends with its stream */
};

/* Which jobs to list. */
struct al_jobs_options {
    const char *page; /* token of a list before; NULL: the newest */
    int status;       /* an Airlock__V1__JobStatus; 0: all */
    uint32_t limit;   /* 0: the server's default */
};

struct al_options {
    enum al_command command;
    bool help, version, json;
    const char *server;                /* never NULL after parsing */
    bool names_server;                 /* rather than the environment, or nobody */
    const char *tenant;                /* NULL: none */
    const char *job_id;                /* of kill, job and attach */
    uint32_t after_sequence;           /* of attach; 0: from what is kept */
    int64_t timeout_ms;                /* deadline of the call; 0: none */
    enum al_cache_action cache_action; /* of cache */
    struct al_jobs_options jobs;
    struct al_run_options run;
};

/* `fallback_server` is the environment's AIRLOCK_SERVER, or NULL. With `help` or `version` set in
 * the result, nothing else needs to be complete. Strings are borrowed from argv, which is not
 * changed. 0 or AL_ERR_INVALID_ARGUMENT; finish the options in both cases. */
int al_options_parse(struct al_options *ret, int argc, char *const argv[],
                     const char *fallback_server, struct al_err *err);
void al_options_finish(struct al_options *options);

/* The language that a file's extension means, or NULL. */
const char *al_options_language_of(const char *file);
