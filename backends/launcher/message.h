/*
 * The messages between airlockd and the launcher, and their bounded codec. One message is one
 * SEQPACKET datagram: a 16-bit type, then the fields in a fixed order, little-endian, strings
 * length-prefixed. Both sides decode with al_msg_decode_*, which accept exactly what encode makes:
 * a cut field, a value out of its range, a string that is too long or holds a NUL, and trailing
 * bytes are all refused.
 *
 *   main socket      launcher → airlockd  HELLO, once
 *                    airlockd → launcher  SPAWN + fds {control, bundle}
 *   control socket   launcher → airlockd  SPAWNED + fds {stdin, stdout, stderr[, artifacts]
 *   (one a job)                             [, compile]} or REFUSED; then STARTED, COMPILED (if
 *                                           there is such a step), and last EXIT
 *                    airlockd → launcher  KILL, SIGNAL; closing it kills the job
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/backend.h"

#define AL_MSG_BYTES_MAX    (32u << 10)
#define AL_RUNTIME_NAME_MAX 64 /* bytes of "name@version", terminator included */
#define AL_WORKDIR_MAX      256
#define AL_WORKDIR_DEFAULT  "/sandbox"
#define AL_RUNTIMES_MAX     32

enum al_msg_type {
    AL_MSG_HELLO = 1,
    AL_MSG_SPAWN,
    AL_MSG_SPAWNED,
    AL_MSG_REFUSED,
    AL_MSG_STARTED,
    AL_MSG_COMPILED,
    AL_MSG_EXIT,
    AL_MSG_KILL,
    AL_MSG_SIGNAL,
    AL_MSG_USAGE,
};

/* How much of a sandbox a job gets. */
enum al_cell_kind {
    AL_CELL_NATIVE, /* everything */
    AL_CELL_LOCAL,  /* a process tree that dies together and its limits; files and network are the
                       host's */
    AL_CELL_BUBBLEWRAP, /* everything; the program is started by bubblewrap */
    AL_CELL_FIREJAIL,   /* likewise, by firejail */
};
#define AL_CELL_KINDS       4
#define AL_CELL_VERSION_MAX 48

/* A tool of somebody else's makes the namespaces, and starts the program: see jail.h. */
static inline bool al_cell_is_jail(enum al_cell_kind kind)
{
    return kind >= AL_CELL_BUBBLEWRAP;
}

struct al_msg_hello_cell {
    bool available;
    uint32_t layers;
    char version[AL_CELL_VERSION_MAX]; /* of what makes such cells */
    char reason[AL_UNAVAILABLE_MAX];
};

struct al_msg_runtime {
    char name[AL_RUNTIME_NAME_MAX];
    char version[AL_RUNTIME_NAME_MAX];
    char aliases[AL_LANGUAGE_ALIASES_MAX][AL_RUNTIME_NAME_MAX]; /* "" ends the list */
    char code_file[AL_RUNTIME_NAME_MAX];
    char output_file[AL_RUNTIME_NAME_MAX]; /* "" when there is no compile step */
};

struct al_msg_hello {
    struct al_msg_hello_cell cells[AL_CELL_KINDS];
    uint32_t n_runtimes;
    struct al_msg_runtime runtimes[AL_RUNTIMES_MAX];
};

/* How an interpreter is made to start ahead of its program; see prestart.h. */
enum al_prestart {
    AL_PRESTART_NONE,
    AL_PRESTART_PYTHON,
    AL_PRESTART_NODE,
    AL_PRESTART_BASH,
    AL_PRESTART_KINDS,
};

struct al_msg_spawn {
    enum al_cell_kind kind;
    char job_id[AL_JOB_ID_LEN + 1];
    char runtime[AL_RUNTIME_NAME_MAX * 2]; /* exact name@version */
    char workdir[AL_WORKDIR_MAX];
    struct al_terminal_size terminal;
    uint32_t may_prestart; /* 1 << enum al_prestart: the program could not tell such a one */
    /* output_bytes is airlockd's business and not sent; artifact_bytes is 0 when no artifacts are
     * wanted, and there is a pipe for them otherwise. */
    struct al_quotas quotas;
};

/* SPAWNED has no fields. REFUSED: */
struct al_msg_refused {
    char text[AL_RESULT_ERROR_MAX];
};

/* STARTED has no fields: the first program of the job (its compile step, if it has one) has been
 * exec'd. */

struct al_msg_compiled {
    int32_t wait_status; /* as of waitpid */
    int64_t duration_us;
};

/* Everything in it was measured by the launcher; nothing in the cell is believed. */
struct al_msg_exit {
    bool ran; /* the program (not only a compile step) was exec'd and ended: wait_status is its */
    int32_t wait_status;
    enum al_limit limit;  /* CPU or WALL when the launcher killed the job for it, else NONE */
    bool killed;          /* by KILL */
    bool prestarted;      /* the program had an interpreter that was started ahead of it */
    uint32_t oom_kills;   /* of any process of the job */
    uint32_t pids_denied; /* forks that met the pids limit */
    int64_t duration_us;  /* exec to end of the program */
    int64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint32_t pids_peak;              /* 0: not measured */
    uint32_t layers;                 /* enum al_layer really in force */
    char error[AL_RESULT_ERROR_MAX]; /* set-up failed: why; "" otherwise */
};

struct al_msg_signal {
    int32_t signo;
};

/* About once a second while the job uses CPU time: what it has used so far. */
struct al_msg_usage {
    int64_t cpu_us;
};

/* The type of a raw message, or 0 when it is too short to have one. */
uint16_t al_msg_type(const void *data, size_t len);

/* Encoders write into `data` (AL_MSG_BYTES_MAX bytes) and return the length. Values out of range
 * are a bug of the caller (assert). al_msg_encode_empty: SPAWNED, STARTED, KILL. */
size_t al_msg_encode_empty(enum al_msg_type type, void *data);
size_t al_msg_encode_hello(const struct al_msg_hello *m, void *data);
size_t al_msg_encode_spawn(const struct al_msg_spawn *m, void *data);
size_t al_msg_encode_refused(const struct al_msg_refused *m, void *data);
size_t al_msg_encode_compiled(const struct al_msg_compiled *m, void *data);
size_t al_msg_encode_exit(const struct al_msg_exit *m, void *data);
size_t al_msg_encode_signal(const struct al_msg_signal *m, void *data);
size_t al_msg_encode_usage(const struct al_msg_usage *m, void *data);

/* Decoders: 0, or -EBADMSG with *m unspecified. The message must be of that type and of nothing
 * else. */
int al_msg_decode_empty(enum al_msg_type type, const void *data, size_t len);
int al_msg_decode_hello(const void *data, size_t len, struct al_msg_hello *m);
int al_msg_decode_spawn(const void *data, size_t len, struct al_msg_spawn *m);
int al_msg_decode_refused(const void *data, size_t len, struct al_msg_refused *m);
int al_msg_decode_compiled(const void *data, size_t len, struct al_msg_compiled *m);
int al_msg_decode_exit(const void *data, size_t len, struct al_msg_exit *m);
int al_msg_decode_signal(const void *data, size_t len, struct al_msg_signal *m);
int al_msg_decode_usage(const void *data, size_t len, struct al_msg_usage *m);
