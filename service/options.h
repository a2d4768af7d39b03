/*
 * airlockd's command line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/err.h"
#include "service/config.h"

struct al_options {
    const char *config; /* path; NULL: none */
    const char *data_dir;
    const char *listen[AL_LISTEN_MAX];
    size_t n_listen;
    bool check_config;
    bool version;
    bool help;
};

extern const char al_options_help[];

/* Strings are borrowed from argv. INVALID_ARGUMENT says what is wrong. */
int al_options_parse(int argc, char **argv, struct al_options *ret, struct al_err *err);

/* Defaults, then the file, then the command line. */
int al_options_configure(const struct al_options *options, struct al_config *ret,
                         struct al_err *err);
