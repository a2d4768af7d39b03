/*
 * A launcher under attack: the product's, or the escape suite's with some barriers off; and jobs in
 * its native cells, whose words are collected.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "backends/launcher/client.h"
#include "tests/escape/world.h"

#define OUTPUT_MAX 16384

struct prison {
    const struct world *world;
    struct al_launcher *launcher;
    char data_dir[80];
};

struct prison_plan {
    const char *launcher; /* NULL: one of the two of the build */
    bool weakened;        /* that one, else the product's */
    bool prepared;        /* jobs get cells that have waited for them */
    uint32_t off;         /* bits of barriers; the product is told all, and must not care */
};

void prison_open(struct prison *p, const struct world *w, const struct prison_plan *plan);
void prison_close(struct prison *p);

/* What a job is. Languages: bash and python run the code. The others have a compile step, for which
 * bash runs the code; then "planted" runs /tmp/attack climb_from_cwd; "watched" has bash run what
 * the code has written to main.out, and "binary" executes that. */
struct inmate {
    const char *language;
    const char *code;
    const char *workdir; /* NULL: /sandbox */
    const char *preload; /* LD_PRELOAD, or NULL */
};

struct words {
    char out[OUTPUT_MAX];
    char err[1024]; /* what it said there first */
    struct al_msg_exit exit;
};

/* Starts the job; it finds `attack` and `preload.so` in its workdir. */
void prison_start(const struct prison *p, const struct inmate *inmate, struct al_launched *ret);

/* Reads until it has ended. The job is closed. */
void prison_listen(struct al_launched *job, struct words *ret);

/* Reads until `text` has come. */
void prison_wait_for(const struct al_launched *job, const char *text);

/* Both. */
void prison_run(const struct prison *p, const struct inmate *inmate, struct words *ret);
