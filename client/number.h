/* Numbers of the command line, without the leniency of strtol and strtod. */
#pragma once

#include <stdint.h>

#include "backends/base/err.h"

/* Decimal digits only, at most `max`. The error begins with `what`. */
int al_number_uint32(const char *what, const char *text, uint32_t max, uint32_t *ret,
                     struct al_err *err);

/* A decimal number from 0 to `max`, exponent allowed. */
int al_number_double(const char *what, const char *text, double max, double *ret,
                     struct al_err *err);
