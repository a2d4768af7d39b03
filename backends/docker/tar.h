/* The few files of a build's context as a tar archive (ustar). */
#pragma once

#include <stddef.h>

#include "backends/base/buf.h"

/* Appends one regular file of that name (below 100 bytes) and mode, owned by root. As
 * al_buf_append. */
int al_tar_add(struct al_buf *to, const char *name, unsigned mode, const void *data, size_t n);

/* Appends what ends an archive. */
int al_tar_end(struct al_buf *to);
