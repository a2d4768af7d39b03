#include "client/number.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int al_number_uint32(const char *what, const char *text, uint32_t max, uint32_t *ret,
                     struct al_err *err)
{
    uint64_t value = 0;
    const char *p = text;
    while (*p >= '0' && *p <= '9' && value <= max) {
        value = value * 10 + (uint64_t)(*p++ - '0');
    }
    if (p == text || *p != '\0' || value > max) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s: '%s' is not a whole number from 0 to %u", what, text, max);
    }
    *ret = (uint32_t)value;
    return 0;
}

int al_number_double(const char *what, const char *text, double max, double *ret,
                     struct al_err *err)
{
    bool decimal = *text != '\0' && text[strspn(text, "0123456789.eE+-")] == '\0' &&
                   ((*text >= '0' && *text <= '9') || *text == '.');
    char *end = NULL;
    double value = decimal ? strtod(text, &end) : -1;
    if (!decimal || *end != '\0' || end == text || !(value >= 0 && value <= max)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: '%s' is not a number from 0 to %.15g",
                          what, text, max);
    }
    *ret = value;
    return 0;
}
