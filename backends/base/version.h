/* Versions of programs, from what they say when they are asked. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Copies the first "digits.digits…" of the text that fits; false when there is none, and `ret` is
 * untouched. */
bool al_version_pick(const char *text, char *ret, size_t size);
