#include "backends/launcher/collect_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

#define ENTRIES_BYTES 2048 /* of a folder at a time; at most AL_ARTIFACT_DEPTH_MAX + 1 are open */

struct walk {
    const struct al_glob *globs;
    size_t n_globs;
    struct al_found *found;
    uint32_t entries_left;
    char path[AL_ARTIFACT_PATH_MAX + NAME_MAX + 1]; /* of the current folder, with its slash */
    size_t path_len;
};

struct positions {
    uint64_t of[AL_ARTIFACT_GLOBS_MAX];
};

void al_found_omit(struct al_found *found)
{
    if (found->omitted < UINT32_MAX) {
        found->omitted++;
    }
}

void al_found_finish(struct al_found *found)
{
    while (found->n > 0) {
        free(found->paths[--found->n]);
    }
}

int al_collect_open(int dir, const char *path, int flags)
{
    const struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
                                 .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                            RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* Keeps the first ones of the order, whatever the order in which they are found. */
static int keep(struct al_found *found, const char *path)
{
    size_t low = 0;
    for (size_t high = found->n; low < high;) {
        size_t middle = (low + high) / 2;
        if (strcmp(found->paths[middle], path) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (found->n == AL_ARTIFACTS_MAX) {
        al_found_omit(found);
        if (low == found->n) {
            return 0;
        }
        free(found->paths[--found->n]);
    }
    char *copy = strdup(path);
    if (!copy) {
        return -ENOMEM;
    }
    memmove(&found->paths[low + 1], &found->paths[low], (found->n - low) * sizeof(char *));
    found->paths[low] = copy;
    found->n++;
    return 0;
}

static int walk_folder(struct walk *w, int dir, const struct positions *at, unsigned depth);

static int enter(struct walk *w, int parent, const char *name, size_t len,
                 const struct positions *at, unsigned depth)
{
    size_t before = w->path_len;
    bool too_deep = depth == AL_ARTIFACT_DEPTH_MAX || before + len + 1 >= AL_ARTIFACT_PATH_MAX;
    al_auto_close int dir = too_deep ? -1 : al_collect_open(parent, name, O_RDONLY | O_DIRECTORY);
    if (dir < 0) {
        al_found_omit(w->found);
        return 0;
    }
    memcpy(w->path + before, name, len);
    w->path[before + len] = '/';
    w->path_len = before + len + 1;
    int rc = walk_folder(w, dir, at, depth + 1);
    w->path_len = before;
    return rc;
}

static int take_file(struct walk *w, const char *name, size_t len, bool regular)
{
    memcpy(w->path + w->path_len, name, len + 1);
    if (!regular || !al_artifact_path_is_valid(w->path, w->path_len + len)) {
        al_found_omit(w->found);
        return 0;
    }
    return keep(w->found, w->path);
}

/* What a file system does not tell by the way has to be asked. */
static unsigned char type_of(int dir, const struct dirent64 *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type;
    }
    return fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN
                                                                     : IFTODT(st.st_mode);
}

static int visit(struct walk *w, int dir, const struct dirent64 *entry, const struct positions *at,
                 unsigned depth)
{
    const char *name = entry->d_name;
    size_t len = strlen(name);
    struct positions next;
    bool matches = false, goes_on = false;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return 0;
    }
    for (size_t i = 0; i < w->n_globs; i++) {
        next.of[i] = at->of[i] ? al_glob_step(&w->globs[i], at->of[i], name, len) : 0;
        matches |= al_glob_is_match(&w->globs[i], next.of[i]);
        goes_on |= al_glob_goes_on(&w->globs[i], next.of[i]);
    }
    if (!matches && !goes_on) {
        return 0;
    }
    unsigned char type = type_of(dir, entry);
    if (type == DT_DIR) {
        return goes_on ? enter(w, dir, name, len, &next, depth) : 0;
    }
    return matches ? take_file(w, name, len, type == DT_REG) : 0;
}

static int walk_folder(struct walk *w, int dir, const struct positions *at, unsigned depth)
{
    _Alignas(struct dirent64) char entries[ENTRIES_BYTES];
    ssize_t got;
    while ((got = getdents64(dir, entries, sizeof entries)) > 0) {
        for (ssize_t i = 0; i < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + i);
            if (w->entries_left == 0) {
                al_found_omit(w->found);
                return 0;
            }
            w->entries_left--;
            int rc = visit(w, dir, entry, at, depth);
            if (rc < 0) {
                return rc;
            }
            i += entry->d_reclen;
        }
    }
    if (got < 0) {
        al_found_omit(w->found);
    }
    return 0;
}

int al_collect_walk(int dir, const struct al_glob *globs, size_t n_globs, struct al_found *ret)
{
    struct walk w = {
        .globs = globs, .n_globs = n_globs, .found = ret, .entries_left = AL_COLLECT_ENTRIES_MAX};
    struct positions start = {{0}};
    *ret = (struct al_found){.n = 0};
    for (size_t i = 0; i < n_globs; i++) {
        start.of[i] = AL_GLOB_START;
    }
    return walk_folder(&w, dir, &start, 0);
}
