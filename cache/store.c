#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cache/data_file.h"

#define READERS_MAX   512
#define MAP_FIRST     (UINT64_C(16) << 20)
#define FORMAT_KEY    "format" /* no record's key: those have 32 bytes */
#define ENV_FLAGS     (MDB_NOTLS | MDB_NOSYNC | MDB_NORDAHEAD)
#define WRONG_FORMAT  "written by another version"
#define FOUND_DAMAGED "was found damaged while in use"

int al_cache_store_init(struct al_cache_store *s, const char *dir, uint64_t map_max)
{
    pthread_rwlockattr_t attr;
    *s = (struct al_cache_store){.dir = strdup(dir), .map_max = map_max};
    if (!s->dir) {
        return -ENOMEM;
    }
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int r = pthread_rwlock_init(&s->in_use, &attr);
    pthread_rwlockattr_destroy(&attr);
    if (r != 0) {
        free(s->dir);
    }
    return -r;
}

void al_cache_store_finish(struct al_cache_store *s)
{
    pthread_rwlock_destroy(&s->in_use);
    free(s->dir);
}

static uint64_t choose_map_bytes(const struct al_cache_store *s, uint64_t file_bytes)
{
    uint64_t bytes = MAP_FIRST;
    while (bytes < file_bytes) {
        bytes *= 2;
    }
    return bytes < s->map_max ? bytes : s->map_max;
}

/* 0 when the file is of our format or has none yet and gets it; MDB_VERSION_MISMATCH. */
static int claim_format(MDB_env *env, MDB_dbi *ret_dbi)
{
    uint32_t format = AL_CACHE_STORE_FORMAT;
    MDB_val key = {sizeof FORMAT_KEY - 1, FORMAT_KEY};
    MDB_val found;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_stat stat;
    int rc = mdb_txn_begin(env, NULL, 0, &txn);
    if (rc != 0) {
        return rc;
    }
    rc = mdb_dbi_open(txn, NULL, 0, &dbi);
    rc = rc ? rc : mdb_stat(txn, dbi, &stat);
    if (rc == 0 && stat.ms_entries == 0) {
        MDB_val value = {sizeof format, &format};
        rc = mdb_put(txn, dbi, &key, &value, 0);
    } else if (rc == 0) {
        rc = mdb_get(txn, dbi, &key, &found);
        bool same = rc == 0 && found.mv_size == sizeof format &&
                    memcmp(found.mv_data, &format, sizeof format) == 0;
        rc = same ? 0 : MDB_VERSION_MISMATCH;
    }
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    *ret_dbi = dbi;
    return mdb_txn_commit(txn);
}

static int set_up(MDB_env *env, const char *dir, uint64_t map_bytes, MDB_dbi *ret_dbi)
{
    int fd;
    int rc = mdb_env_set_maxreaders(env, READERS_MAX);
    rc = rc ? rc : mdb_env_set_mapsize(env, map_bytes);
    rc = rc ? rc : mdb_env_open(env, dir, ENV_FLAGS, 0600);
    rc = rc ? rc : mdb_env_get_fd(env, &fd);
    if (rc == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        rc = errno;
    }
    return rc ? rc : claim_format(env, ret_dbi);
}

/* Where it is now, so that its pages can be given back; without, they just stay resident. */
static void find_map(struct al_cache_store *s)
{
    int fd;
    if (mdb_env_get_fd(s->env, &fd) == 0) {
        (void)al_file_map_find(&s->map, fd);
    }
}

static int open_sound_file(struct al_cache_store *s, const struct al_cache_data_file *file)
{
    MDB_env *env;
    MDB_dbi dbi = 0;
    MDB_stat stat;
    int rc = mdb_env_create(&env);
    if (rc != 0) {
        return rc;
    }
    rc = set_up(env, s->dir, choose_map_bytes(s, file->bytes), &dbi);
    rc = rc ? rc : mdb_env_stat(env, &stat);
    if (rc != 0) {
        mdb_env_close(env);
        if (file->fresh) {
            al_cache_data_file_remove(s->dir); /* half a file would look like a damaged one */
        }
        return rc;
    }
    pthread_rwlock_wrlock(&s->in_use);
    s->env = env;
    s->dbi = dbi;
    s->page_bytes = stat.ms_psize;
    atomic_store(&s->file_bytes, 0);
    find_map(s);
    pthread_rwlock_unlock(&s->in_use);
    al_cache_store_committed(s);
    return 0;
}

static int set_aside(struct al_cache_store *s, const char *why,
                     struct al_cache_store_opened *opened)
{
    char name[64];
    int r = al_cache_data_file_set_aside(s->dir, name, sizeof name);
    if (r == 0) {
        snprintf(opened->trouble, sizeof opened->trouble, "%s set aside as %s: %s",
                 AL_DATA_FILE_NAME, name, why);
    }
    return r;
}

/* Leaves a file that may be opened, or none. 0 or -errno. */
static int tidy_file(struct al_cache_store *s, bool distrust, struct al_cache_data_file *file,
                     struct al_cache_store_opened *opened)
{
    int r = al_cache_data_file_prepare(s->dir);
    r = r ? r : al_cache_data_file_check(s->dir, file);
    if (r < 0 || file->fresh) {
        return r;
    }
    const char *why = distrust ? FOUND_DAMAGED : file->wrong;
    if (!why && file->bytes <= s->map_max) {
        return 0;
    }
    r = why ? set_aside(s, why, opened) : al_cache_data_file_remove(s->dir);
    *file = (struct al_cache_data_file){.fresh = true};
    return r;
}

int al_cache_store_open(struct al_cache_store *s, bool distrust, struct al_cache_store_opened *ret)
{
    struct al_cache_data_file file = {0};
    struct al_cache_store_opened opened = {0};
    int rc = -tidy_file(s, distrust, &file, &opened);
    rc = rc ? rc : open_sound_file(s, &file);
    if (rc == MDB_VERSION_MISMATCH) {
        rc = -set_aside(s, WRONG_FORMAT, &opened);
        file = (struct al_cache_data_file){.fresh = true};
        rc = rc ? rc : open_sound_file(s, &file);
    }
    if (rc != 0) {
        snprintf(opened.trouble, sizeof opened.trouble, "cannot open %s in %.150s: %s",
                 AL_DATA_FILE_NAME, s->dir, mdb_strerror(rc));
    } else if (!file.fresh) {
        opened.entries = file.audit.entries - 1; /* less the format's own */
        opened.bytes =
            file.audit.bytes -
            al_cache_audit_footprint(s->page_bytes, sizeof FORMAT_KEY - 1, sizeof(uint32_t));
    }
    *ret = opened;
    return rc;
}

void al_cache_store_close(struct al_cache_store *s, bool flush)
{
    if (!s->env) {
        return;
    }
    MDB_env *env = s->env;
    pthread_rwlock_wrlock(&s->in_use);
    s->env = NULL;
    s->map.addr = NULL;
    pthread_rwlock_unlock(&s->in_use);
    if (flush) {
        mdb_env_sync(env, 1);
    }
    mdb_env_close(env);
}

int al_cache_store_grow(struct al_cache_store *s)
{
    MDB_envinfo info;
    int rc = mdb_env_info(s->env, &info);
    if (rc != 0 || info.me_mapsize >= s->map_max) {
        return rc ? rc : MDB_MAP_FULL;
    }
    uint64_t bytes = info.me_mapsize > s->map_max / 2 ? s->map_max : (uint64_t)info.me_mapsize * 2;
    pthread_rwlock_wrlock(&s->in_use);
    rc = mdb_env_set_mapsize(s->env, bytes);
    find_map(s);
    pthread_rwlock_unlock(&s->in_use);
    return rc;
}

/* 0 when it has no name any more. */
static uint64_t file_length(MDB_env *env)
{
    int fd;
    struct stat st;
    bool known = mdb_env_get_fd(env, &fd) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0;
    return known ? (uint64_t)st.st_size : 0;
}

bool al_cache_store_is_cut(const struct al_cache_store *s)
{
    uint64_t least = atomic_load(&s->file_bytes); /* before the length, which may grow */
    return file_length(s->env) < least;
}

void al_cache_store_committed(struct al_cache_store *s)
{
    atomic_store(&s->file_bytes, file_length(s->env));
    al_file_map_use(&s->map);
}

static int read_record(struct al_cache_store *s, const uint8_t *key, uint8_t **ret_data,
                       size_t *ret_len)
{
    MDB_txn *txn;
    MDB_val name = {AL_CACHE_RECORD_KEY_LEN, (void *)key};
    MDB_val value;
    if (al_cache_store_is_cut(s)) {
        return MDB_CORRUPTED;
    }
    int rc = mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0) {
        return rc;
    }
    rc = mdb_get(txn, s->dbi, &name, &value);
    uint8_t *copy = rc == 0 ? malloc(value.mv_size + 1) : NULL;
    if (copy) {
        memcpy(copy, value.mv_data, value.mv_size);
        *ret_data = copy;
        *ret_len = value.mv_size;
    } else if (rc == 0) {
        rc = ENOMEM;
    }
    mdb_txn_abort(txn);
    al_file_map_use(&s->map);
    return rc;
}

int al_cache_store_read(struct al_cache_store *s, const uint8_t key[AL_CACHE_RECORD_KEY_LEN],
                        uint8_t **ret_data, size_t *ret_len)
{
    if (pthread_rwlock_tryrdlock(&s->in_use) != 0) {
        return EBUSY;
    }
    int rc = s->env ? read_record(s, key, ret_data, ret_len) : EBUSY;
    pthread_rwlock_unlock(&s->in_use);
    return rc;
}
