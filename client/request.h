/* From the command line to the message: reads the files that it names. */
#pragma once

#include "backends/base/err.h"
#include "client/options.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/arena.h"

/* What is read from files and standard input together; the server's own limits are lower. */
#define AL_REQUEST_READ_MAX ((size_t)64 << 20)

/* Makes the message in a new arena, which the caller owns. `read_stdin`: standard input, up to its
 * end, becomes the program's. Blocks as long as the files do. The options are borrowed as long as
 * the message. The error names the file. */
int al_request_create(const struct al_options *options, bool read_stdin,
                      struct al_arena **ret_arena, Airlock__V1__RunRequest **ret,
                      struct al_err *err);
