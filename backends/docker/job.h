/*
 * The first frame that a container's init reads: what it is to run, with which limits. The strings
 * behind the struct, each with its NUL: workdir, code_file, then the words of the compile step, of
 * the program's argv. The rest of a job (code, files, environment) follows as items.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/api/job_spec.h"

#define AL_CONTAINER_VERSION   1
#define AL_CONTAINER_WORDS_MAX 64 /* of both argvs together */
#define AL_CONTAINER_HOST_NAME "sandbox"
#define AL_CONTAINER_ROOM_MB   32 /* memory for a collector, of which no program has any */
#define AL_CONTAINER_OWN_PIDS  1  /* processes that are not of the program: init */

struct al_container_job {
    uint32_t version;
    uint32_t n_compile; /* words; 0: no compile step */
    uint32_t n_argv;
    struct al_terminal_size terminal;
    int64_t cpu_ms;
    int64_t wall_ms;
    int64_t patience_ms; /* how long its reader may take for what the program has left */
    uint64_t artifact_bytes;
    uint32_t memory_mb; /* what the container was made with: init looks whether it is so */
    uint32_t pids;
    uint32_t file_size_mb;
    uint32_t open_files;
    uint32_t require; /* enum al_layer bits without which nothing is run */
};

/* All of it within bounds; the pointers lie in what was decoded. */
struct al_container_plan {
    struct al_container_job job;
    const char *workdir;
    const char *code_file;
    const char *compile[AL_CONTAINER_WORDS_MAX + 1]; /* NULL-terminated */
    const char *argv[AL_CONTAINER_WORDS_MAX + 1];
};

/* The length of the payload in `to` (`size` bytes), or -EFBIG. */
ssize_t al_container_job_encode(const struct al_container_plan *plan, uint8_t *to, size_t size);
/* 0 or -EBADMSG. */
int al_container_job_decode(const uint8_t *data, size_t n, struct al_container_plan *ret);
