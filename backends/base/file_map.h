/*
 * A file that a library keeps mapped without saying where. What is touched of it counts as this
 * process's resident memory until the kernel needs the page, so a long-lived process seems to grow
 * with its files: here the pages are given back to the page cache now and then, from where the next
 * touch takes them without the disk.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

struct al_file_map {
    void *addr; /* NULL: not known, and then nothing is given back */
    size_t len;
    atomic_uint uses;
};

/* Finds the one shared mapping of the file that is open as `fd`. To be called again after it has
 * moved, and by nobody while another thread may use `map`. 0, or -errno with nothing known. */
int al_file_map_find(struct al_file_map *map, int fd);

/* Any thread, while the mapping exists. The second counts a use that touches few pages, and gives
 * them back every AL_FILE_MAP_USES. */
void al_file_map_give_back(const struct al_file_map *map);
#define AL_FILE_MAP_USES 64
void al_file_map_use(struct al_file_map *map);
