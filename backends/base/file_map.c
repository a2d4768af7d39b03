#include "backends/base/file_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

/* "FROM-TO PERMISSIONS OFFSET DEVICE INODE    PATH"; the path, or NULL when it is a private one. */
static const char *parse_line(char *line, uintptr_t *ret_from, uintptr_t *ret_to)
{
    char permissions[5];
    int path_at = 0;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %*u %n", ret_from, ret_to, permissions,
               &path_at) != 3 ||
        permissions[3] != 's' || path_at == 0)
    {
        return NULL;
    }
    line[strcspn(line, "\n")] = '\0';
    return line + path_at;
}

/* By the path and not by device and inode: those differ from fstat's on some file systems. */
int al_file_map_find(struct al_file_map *map, int fd)
{
    char link[64], path[4096], line[4096 + 128];
    map->addr = NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) {
        return -errno;
    }
    path[n] = '\0';
    al_auto_fclose FILE *f = fopen("/proc/self/maps", "re");
    if (!f) {
        return -errno;
    }
    while (fgets(line, sizeof line, f)) {
        uintptr_t from, to;
        const char *mapped = parse_line(line, &from, &to);
        if (mapped && strcmp(mapped, path) == 0) {
            map->addr = (void *)from;
            map->len = to - from;
            return 0;
        }
    }
    return -ENOENT;
}

void al_file_map_give_back(const struct al_file_map *map)
{
    if (map->addr) {
        madvise(map->addr, map->len, MADV_DONTNEED);
    }
}

void al_file_map_use(struct al_file_map *map)
{
    unsigned before = atomic_fetch_add_explicit(&map->uses, 1, memory_order_relaxed);
    if (before % AL_FILE_MAP_USES == AL_FILE_MAP_USES - 1) {
        al_file_map_give_back(map);
    }
}
