/* The table of all options and what each does with its value. Private to the option parser. */
#pragma once

#include "client/options.h"

enum al_option_kind {
    AL_OPTION_FLAG,    /* bool; the only kind without a value */
    AL_OPTION_STRING,  /* const char *, not empty */
    AL_OPTION_TEXT,    /* const char *, may be empty, given once */
    AL_OPTION_LIST,    /* struct al_strings, no item empty */
    AL_OPTION_UINT32,  /* uint32_t */
    AL_OPTION_SECONDS, /* double */
    AL_OPTION_MS,      /* int64_t, given in seconds */
    AL_OPTION_STATUS,  /* int, given as the word of a JobStatus */
};

struct al_option_row {
    const char *name;
    size_t offset; /* in struct al_options */
    /* Checks the form of a value; may be NULL. */
    int (*check)(const char *what, const char *value, struct al_err *err);
    enum al_option_kind kind;
    unsigned commands; /* one bit a command: 1 << AL_COMMAND_RUN */
    uint32_t max;      /* of numbers */
    char letter;       /* 0: none */
};

extern const struct al_option_row al_option_rows[];
extern const size_t al_option_rows_count;

/* Stores the value of one occurrence; NULL for a flag. The lists have room. */
int al_option_apply(const struct al_option_row *row, const char *value, struct al_options *options,
                    struct al_err *err);

/* Refuses what no string of a request may be. */
int al_option_check_utf8(const char *what, const char *value, struct al_err *err);
