/* The one table, printed row by row, and the lines below it that say whether the aims are met. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tests/bench/contest.h"

void al_table_heading(void);

/* A row of what al_contest_run measured. `base`: whose median it is divided by, or NULL. */
void al_table_row(const struct al_contestant *who, unsigned threads,
                  const struct al_contestant *base);

/* The same for what moves `bytes` a repetition: MB/s, and the ratio is that of the throughputs. */
void al_table_row_bytes(const struct al_contestant *who, size_t bytes,
                        const struct al_contestant *base);

struct al_aim {
    char text[96];
    double limit;
    bool at_least; /* else at most */
    double ratio;  /* measured; 0: not measured */
};

/* True when no measured aim is missed. */
bool al_table_aims(const struct al_aim *aims, size_t n);
