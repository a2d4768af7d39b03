/*
 * Files that a program has left and its caller asked for. Their names and bytes come from a program
 * that nobody trusts; what stands here has passed al_artifact_path_is_valid.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds of one job. What is beyond them is omitted, and counted. */
#define AL_ARTIFACTS_MAX      256
#define AL_ARTIFACT_GLOBS_MAX 64
#define AL_ARTIFACT_DEPTH_MAX 60   /* folders between the workdir and a file */
#define AL_ARTIFACT_PATH_MAX  1024 /* bytes, terminator included */
#define AL_ARTIFACT_BYTES_MAX (1u << 30)

struct al_artifact {
    char *path;    /* relative to the workdir */
    uint8_t *data; /* NULL only when len is 0 */
    size_t len;
    uint32_t mode;  /* permission bits only */
    bool truncated; /* the file is longer */
};

/* Sorted by path, bytewise. Zeroed: none. */
struct al_artifacts {
    struct al_artifact *items;
    size_t n;
    uint32_t omitted; /* matched and are not here; saturates */
};

/* Appends; takes over path and data (both malloc'ed) in any case. 0 or -ENOMEM. */
int al_artifacts_add(struct al_artifacts *artifacts, struct al_artifact artifact);

/* Leaves none. */
void al_artifacts_finish(struct al_artifacts *artifacts);

/* Of all contents together. */
uint64_t al_artifacts_bytes(const struct al_artifacts *artifacts);

/* All matching files are here as they were, so that the same again would give the same. */
bool al_artifacts_are_whole(const struct al_artifacts *artifacts);

/* The most memory that the artifacts of a job take when `bytes` is all that their contents may
 * have. */
size_t al_artifacts_memory(uint64_t bytes);

/* Relative, no empty, "." or ".." component, at most 255 bytes a component and AL_ARTIFACT_PATH_MAX
 * - 1 in all, valid UTF-8, no control characters (so that it can be shown and logged). */
bool al_artifact_path_is_valid(const char *path, size_t len);
