#include "cache/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

#define LOCK_FILE_BYTES (64 << 10) /* about a thousand readers */
#define NAMES_MAX       1000       /* files set aside within one second */

static int open_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int al_cache_data_file_prepare(const char *dir)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
        return -errno;
    }
    al_auto_close int folder = open_dir(dir);
    if (folder < 0) {
        return folder;
    }
    al_auto_close int fd = openat(folder, AL_LOCK_FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : -posix_fallocate(fd, 0, LOCK_FILE_BYTES);
}

static int check_open_file(int fd, struct al_cache_data_file *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return -errno;
    }
    ret->bytes = (uint64_t)st.st_size;
    ret->fresh = st.st_size == 0;
    if (!S_ISREG(st.st_mode) || ret->fresh) {
        return ret->fresh ? 0 : -EISDIR;
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        return -errno;
    }
    ret->wrong = al_cache_audit_file(data, (size_t)st.st_size, &ret->audit);
    munmap(data, (size_t)st.st_size);
    return 0;
}

int al_cache_data_file_check(const char *dir, struct al_cache_data_file *ret)
{
    struct al_cache_data_file file = {.fresh = true};
    al_auto_close int folder = open_dir(dir);
    if (folder < 0) {
        return folder;
    }
    al_auto_close int fd = openat(folder, AL_DATA_FILE_NAME, O_RDWR | O_CLOEXEC);
    int r = fd >= 0 ? check_open_file(fd, &file) : errno == ENOENT ? 0 : -errno;
    if (r == 0) {
        *ret = file;
    }
    return r;
}

static bool is_there(int folder, const char *name)
{
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int al_cache_data_file_set_aside(const char *dir, char *ret_name, size_t size)
{
    char name[NAME_MAX + 1];
    struct tm tm;
    time_t now = time(NULL);
    al_auto_close int folder = open_dir(dir);
    if (folder < 0 || !gmtime_r(&now, &tm)) {
        return folder < 0 ? folder : -EOVERFLOW;
    }
    size_t len = strftime(name, sizeof name, AL_DATA_FILE_NAME ".%Y%m%dT%H%M%SZ", &tm);
    for (int i = 1; is_there(folder, name) && i < NAMES_MAX; i++) {
        snprintf(name + len, sizeof name - len, "-%d", i);
    }
    if (renameat(folder, AL_DATA_FILE_NAME, folder, name) < 0) {
        return -errno;
    }
    snprintf(ret_name, size, "%s", name);
    return 0;
}

int al_cache_data_file_remove(const char *dir)
{
    al_auto_close int folder = open_dir(dir);
    if (folder < 0) {
        return folder == -ENOENT ? 0 : folder;
    }
    return unlinkat(folder, AL_DATA_FILE_NAME, 0) < 0 && errno != ENOENT ? -errno : 0;
}
