/*
 * Whether a file is safe to give to LMDB.
 *
 * LMDB believes what it maps: a page number or an offset that is off makes it read outside of the
 * map, a truncated file raises SIGBUS, some inconsistencies abort the process. This walks the
 * newest snapshot of such a file before LMDB sees it: every page that a tree reaches is there, is
 * what it should be and belongs to one place only; every node has its own place in its page; keys
 * are in order; the counts agree; the free list names only pages that nothing uses. Values are not
 * looked at.
 *
 * It knows the format of LMDB 0.9 (data version 1) as one machine with 64 bits writes it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The bytes are the whole file, mapped or read; nobody writes to it. -EBADMSG: not such a file, or
 * damaged, with a few words in *ret_why. -ENOMEM. Takes one bit a page of memory, and reads all
 * but the values. Thread-safe: no state outside of the arguments.
 */
int al_map_check(const uint8_t *data, size_t len, const char **ret_why);

/* As al_map_check for the file `name` in the folder. A file that is missing or empty is fine. Other
 * -errno when it cannot be read. */
int al_map_check_file(int dirfd, const char *name, const char **ret_why);
