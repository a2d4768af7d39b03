#include "backends/launcher/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/launcher/rootfs.h"

#define RANGES_MAX 64
#define RANGE_UIDS (2 * AL_JOBS_MAX) /* one size for all, so that no two ranges overlap */

int al_instance_name(const char *data_dir, char ret[AL_INSTANCE_NAME_MAX], struct al_err *err)
{
    al_auto_free char *path = realpath(data_dir, NULL);
    if (!path) {
        return al_err_errno(err, errno, "data-dir %s", data_dir);
    }
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a: a name, not a secret */
    for (const char *at = path; *at; at++) {
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    }
    snprintf(ret, AL_INSTANCE_NAME_MAX, "%016" PRIx64, hash);
    return 0;
}

int al_instance_lock_uids(struct al_cells_config *config, struct al_err *err)
{
    if (mkdir(AL_RUN_DIR, 0755) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "mkdir " AL_RUN_DIR);
    }
    for (uint32_t i = 0; i < RANGES_MAX; i++) {
        uid_t base = config->uid_base + i * RANGE_UIDS;
        char path[64];
        snprintf(path, sizeof path, AL_RUN_DIR "/uids.%u", base);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return al_err_errno(err, errno, "%s", path);
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            config->uid_base = base;
            return 0; /* the fd stays open: it is the lock */
        }
        close(fd);
    }
    return al_err_set(err, AL_ERR_RESOURCE_EXHAUSTED, "all %d ranges of uids are in use",
                      RANGES_MAX);
}
