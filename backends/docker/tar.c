#include "backends/docker/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 512

struct header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[8]; /* with the version */
    char rest[247];
};
_Static_assert(sizeof(struct header) == BLOCK, "ustar");

static int pad(struct al_buf *to, size_t n)
{
    static const char zeros[BLOCK];
    return al_buf_append(to, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

int al_tar_add(struct al_buf *to, const char *name, unsigned mode, const void *data, size_t n)
{
    struct header h = {.uid = "0000000", .gid = "0000000", .mtime = "00000000000", .type = '0'};
    unsigned sum = 0;
    if (strlen(name) >= sizeof h.name || n >= (size_t)1 << 33) {
        return -EFBIG;
    }
    memcpy(h.name, name, strlen(name));
    memcpy(h.magic, "ustar\00000", sizeof h.magic);
    snprintf(h.mode, sizeof h.mode, "%07o", mode & 07777);
    snprintf(h.size, sizeof h.size, "%011zo", n);
    memset(h.checksum, ' ', sizeof h.checksum);
    for (size_t i = 0; i < sizeof h; i++) {
        sum += ((const unsigned char *)&h)[i];
    }
    snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    int rc = al_buf_append(to, &h, sizeof h);
    rc = rc < 0 ? rc : al_buf_append(to, data, n);
    return rc < 0 ? rc : pad(to, n);
}

int al_tar_end(struct al_buf *to)
{
    static const char zeros[2 * BLOCK];
    return al_buf_append(to, zeros, sizeof zeros);
}
