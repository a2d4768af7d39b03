#include "service/records/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "service/records/map_check.h"

#define DATA_NAME   "data.mdb"
#define LOCK_NAME   "lock.mdb"
#define READERS_MAX 512
#define LOCK_BYTES  (72u << 9) /* a line of 64 bytes a reader, and a page */
#define SAME_SECOND 100        /* files set aside */

/* Beyond max_bytes: copies of the pages that one commit changes, and those that are free. */
#define MAP_SPARE_BYTES (32u << 20)

static const char *const tree_names[STORE_TREES] = {"about", "jobs", "ids", "index"};

static int set_aside(int dirfd, const char *why, char *ret_note, struct al_err *err)
{
    char stamp[32];
    char name[64];
    struct tm tm;
    time_t now = (time_t)(al_wall_ns() / 1000000000);
    (void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
    for (int i = 0; i < SAME_SECOND; i++) {
        (void)snprintf(name, sizeof name, DATA_NAME ".%s-%02d", stamp, i);
        if (renameat2(dirfd, DATA_NAME, dirfd, name, RENAME_NOREPLACE) == 0 || errno == ENOENT) {
            (void)snprintf(ret_note, AL_STORE_NOTE_MAX, "%s (%s)", name, why);
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return al_err_errno(err, errno, "cannot set " DATA_NAME " aside (%s)", why);
}

/* LMDB writes to this file through its map, where a full disk would be a SIGBUS: so its blocks are
 * there before. Nobody else has it open: all locks on it are let go here. */
static int allocate_lock_file(int dirfd, struct al_err *err)
{
    al_auto_close int fd =
        openat(dirfd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, LOCK_BYTES) < 0) {
        return al_err_errno(err, errno, "cannot make " LOCK_NAME);
    }
    int r = posix_fallocate(fd, 0, LOCK_BYTES);
    return r == 0 ? 0 : al_err_errno(err, r, "cannot make " LOCK_NAME);
}

/* Leaves a file that LMDB can take, or none. */
static int check_data(int dirfd, bool distrusted, char *ret_note, struct al_err *err)
{
    const char *why = "LMDB found it corrupt";
    int r = distrusted ? -EBADMSG : al_map_check_file(dirfd, DATA_NAME, &why);
    if (r == -EBADMSG) {
        return set_aside(dirfd, why, ret_note, err);
    }
    return r < 0 ? al_err_errno(err, -r, "cannot read " DATA_NAME) : 0;
}

static int open_env(struct al_store *store, const struct al_store_options *options,
                    struct al_err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t map = options->max_bytes + options->max_bytes / 4 + MAP_SPARE_BYTES;
    int rc = mdb_env_create(&store->env);
    if (rc == 0) {
        rc = mdb_env_set_maxreaders(store->env, READERS_MAX);
    }
    if (rc == 0) {
        rc = mdb_env_set_maxdbs(store->env, STORE_TREES);
    }
    if (rc == 0) {
        rc = mdb_env_set_mapsize(store->env, map / page * page);
    }
    if (rc == 0) {
        rc = mdb_env_open(store->env, options->dir, MDB_NOTLS | MDB_NOMETASYNC, 0600);
    }
    int fd;
    if (rc == 0 && mdb_env_get_fd(store->env, &fd) == 0) {
        (void)al_file_map_find(&store->map, fd);
    }
    return rc == 0 ? 0 : store_fail(err, rc, "cannot open " DATA_NAME);
}

/* Of a file that has nothing in it yet. */
static int begin_trees(struct al_store *store, MDB_txn *txn)
{
    int rc = 0;
    uint8_t format[1] = {AL_RECORD_FORMAT};
    for (int i = 0; rc == 0 && i < STORE_TREES; i++) {
        rc = mdb_dbi_open(txn, tree_names[i], MDB_CREATE, &store->trees[i]);
    }
    if (rc == 0 && RAND_bytes(store->secret, sizeof store->secret) != 1) {
        rc = EIO;
    }
    if (rc == 0) {
        rc = mdb_put(txn, store->trees[STORE_ABOUT], &(MDB_val){6, "format"},
                     &(MDB_val){sizeof format, format}, 0);
    }
    if (rc == 0) {
        rc = mdb_put(txn, store->trees[STORE_ABOUT], &(MDB_val){6, "secret"},
                     &(MDB_val){sizeof store->secret, store->secret}, 0);
    }
    return rc;
}

/* MDB_VERSION_MISMATCH when the file is another's or of another format. */
static int find_trees(struct al_store *store, MDB_txn *txn)
{
    MDB_val format;
    MDB_val secret;
    for (int i = 0; i < STORE_TREES; i++) {
        int rc = mdb_dbi_open(txn, tree_names[i], 0, &store->trees[i]);
        if (rc != 0) {
            return rc == MDB_NOTFOUND || rc == MDB_INCOMPATIBLE ? MDB_VERSION_MISMATCH : rc;
        }
    }
    int rc = mdb_get(txn, store->trees[STORE_ABOUT], &(MDB_val){6, "format"}, &format);
    if (rc == 0) {
        rc = mdb_get(txn, store->trees[STORE_ABOUT], &(MDB_val){6, "secret"}, &secret);
    }
    if (rc == MDB_NOTFOUND ||
        (rc == 0 && (format.mv_size != 1 || *(uint8_t *)format.mv_data != AL_RECORD_FORMAT ||
                     secret.mv_size != sizeof store->secret)))
    {
        return MDB_VERSION_MISMATCH;
    }
    if (rc == 0) {
        memcpy(store->secret, secret.mv_data, sizeof store->secret);
    }
    return rc;
}

static int open_trees(struct al_store *store, MDB_txn *txn)
{
    MDB_dbi main;
    MDB_stat stat;
    int rc = mdb_dbi_open(txn, NULL, 0, &main);
    if (rc == 0) {
        rc = mdb_stat(txn, main, &stat);
    }
    if (rc == 0) {
        rc = stat.ms_entries == 0 ? begin_trees(store, txn) : find_trees(store, txn);
    }
    return rc;
}

/* -EUCLEAN: not a file of ours. */
static int open_store(struct al_store *store, const struct al_store_options *options,
                      struct al_err *err)
{
    MDB_txn *txn;
    int r = open_env(store, options, err);
    if (r < 0) {
        return r;
    }
    int rc = mdb_txn_begin(store->env, NULL, 0, &txn);
    if (rc == 0) {
        rc = open_trees(store, txn);
        if (rc == 0) {
            rc = store_commit(store, txn);
        } else {
            mdb_txn_abort(txn);
        }
    }
    if (rc != 0) {
        return store_fail(err, rc, "cannot begin " DATA_NAME);
    }
    return options->interrupt ? store_interrupt(store, al_wall_ns(), err) : 0;
}

static int open_folder(const char *dir, int *ret, struct al_err *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
        return al_err_errno(err, errno, "cannot make the folder of records");
    }
    *ret = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? al_err_errno(err, errno, "cannot open the folder of records") : 0;
}

static int try_open(const struct al_store_options *options, int dirfd, struct al_store **ret,
                    struct al_err *err)
{
    struct stat st;
    bool fresh = fstatat(dirfd, DATA_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size == 0;
    struct al_store *store = calloc(1, sizeof *store);
    if (!store) {
        return al_err_errno(err, ENOMEM, "cannot open " DATA_NAME);
    }
    int r = open_store(store, options, err);
    if (r == 0) {
        *ret = store;
        return 0;
    }
    al_store_close(store);
    if (fresh) {
        (void)unlinkat(dirfd, DATA_NAME, 0); /* a first page that did not fit the disk */
    }
    return r;
}

int al_store_open(const struct al_store_options *options, struct al_store **ret, char *ret_note,
                  struct al_err *err)
{
    al_auto_close int dirfd = -1;
    struct al_err first = {0};
    int r = open_folder(options->dir, &dirfd, err);
    if (r == 0) {
        r = allocate_lock_file(dirfd, err);
    }
    if (r == 0) {
        r = check_data(dirfd, options->set_aside, ret_note, err);
    }
    if (r < 0) {
        return r;
    }
    r = try_open(options, dirfd, ret, &first);
    if (r != -EUCLEAN) {
        return r == 0 ? 0 : al_err_set(err, first.code, "%s", first.text), r;
    }
    r = set_aside(dirfd, first.text, ret_note, err);
    return r < 0 ? r : try_open(options, dirfd, ret, err);
}

void al_store_close(struct al_store *store)
{
    if (store) {
        if (store->env) {
            (void)mdb_env_sync(store->env, 1);
            mdb_env_close(store->env);
        }
        free(store);
    }
}

const uint8_t *al_store_secret(const struct al_store *store)
{
    return store->secret;
}
