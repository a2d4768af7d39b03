/*
 * Records for tests: real packed jobs, made and taken apart, in a folder that goes away. Failures
 * fail the test.
 */
#pragma once

#include <stdbool.h>

#include "backends/api/job_spec.h"
#include "backends/api/result.h"
#include "service/records/records.h"

extern const struct al_records_limits al_test_limits;

/* A folder of its own, removed by al_test_dir_remove. */
void al_test_dir_make(char ret[128]);
/* In memory, if there is such a place: what takes time there is not the disk. */
void al_test_dir_make_quick(char ret[128]);
void al_test_dir_remove(const char *dir);

struct al_records *al_test_records_open(const char *dir, const struct al_records_limits *limits);

/* What tests know of a job. */
struct al_test_record {
    const char *tenant;
    uint64_t id;
    int64_t created_ns; /* 0: id nanoseconds */
    int status;
    uint32_t version;   /* goes into user_id */
    uint32_t pad_bytes; /* in its metadata */
};

void al_test_put(struct al_records *records, const struct al_test_record *record);

/* Waits until nothing waits. */
void al_test_settle(struct al_records *records);

struct al_test_seen {
    uint64_t id;
    int status;
    uint32_t version;
    bool interrupted; /* failed for that reason, with all that belongs to it */
};

/* 0 or what al_records_get returned. */
int al_test_get(struct al_records *records, const char *tenant, uint64_t id,
                struct al_test_seen *ret);

/* One page; the number of jobs or -errno. `token` is replaced. */
int al_test_page(struct al_records *records, const char *tenant, int status, uint32_t page_size,
                 char token[AL_RECORDS_TOKEN_MAX], struct al_test_seen *ret);

/* All pages; at most `max` jobs. */
size_t al_test_list(struct al_records *records, const char *tenant, int status, uint32_t page_size,
                    struct al_test_seen *ret, size_t max);

/* Files in the folder whose name begins with that. */
int al_test_count_files(const char *dir, const char *prefix);

/* A small generator: the same everywhere. */
uint32_t al_test_random(uint64_t *state, uint32_t below);
