#include "service/records/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/rand.h>

#include "backends/api/result.h"
#include "service/records/records_internal.h"

_Static_assert(sizeof((struct al_records_stats *)0)->set_aside == AL_STORE_NOTE_MAX,
               "what the store says fits");

/* --- life --- */

static int init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attr;
    int r = pthread_condattr_init(&attr);
    if (r != 0) {
        return r;
    }
    r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (r == 0) {
        r = pthread_cond_init(condition, &attr);
    }
    pthread_condattr_destroy(&attr);
    return r;
}

static struct al_records *create(const char *dir, const struct al_records_limits *limits)
{
    struct al_records *records = calloc(1, sizeof *records);
    if (!records) {
        return NULL;
    }
    records->limits = *limits;
    records->wake_bytes = SIZE_MAX;
    records->dir = strdup(dir);
    if (!records->dir || RAND_bytes(records->secret, sizeof records->secret) != 1 ||
        init_condition(&records->work) != 0)
    {
        free(records->dir);
        free(records);
        return NULL;
    }
    pthread_mutex_init(&records->lock, NULL);
    return records;
}

static void destroy(struct al_records *records)
{
    al_overlay_clear(&records->overlay);
    al_store_close(records->store);
    pthread_cond_destroy(&records->work);
    pthread_mutex_destroy(&records->lock);
    free(records->dir);
    free(records);
}

int al_records_open(const char *dir, const struct al_records_limits *limits,
                    struct al_records **ret, struct al_err *err)
{
    struct al_records *records = create(dir, limits);
    if (!records) {
        return al_err_errno(err, ENOMEM, "cannot keep records");
    }
    (void)records_open_store(records, false, false);
    int r = pthread_create(&records->writer, NULL, records_write, records);
    if (r != 0) {
        destroy(records);
        return al_err_errno(err, r, "cannot start the thread that writes records");
    }
    *ret = records;
    return 0;
}

void al_records_close(struct al_records *records)
{
    if (!records) {
        return;
    }
    pthread_mutex_lock(&records->lock);
    records->stopping = true;
    pthread_cond_signal(&records->work);
    pthread_mutex_unlock(&records->lock);
    pthread_join(records->writer, NULL);
    destroy(records);
}

/* --- the store --- */

struct al_store *records_enter(struct al_records *records)
{
    pthread_mutex_lock(&records->lock);
    struct al_store *store = records->store;
    records->readers += store != NULL;
    pthread_mutex_unlock(&records->lock);
    return store;
}

void records_leave(struct al_records *records)
{
    pthread_mutex_lock(&records->lock);
    if (--records->readers == 0 && !records->store) {
        pthread_cond_signal(&records->work);
    }
    pthread_mutex_unlock(&records->lock);
}

int records_open_store(struct al_records *records, bool again, bool set_aside)
{
    const struct al_store_options options = {
        .dir = records->dir,
        .max_bytes = records->limits.max_bytes,
        .set_aside = set_aside,
        .interrupt = !again,
    };
    struct al_err err = {0};
    struct al_store *store = NULL;
    char note[AL_STORE_NOTE_MAX] = "";
    int r = al_store_open(&options, &store, note, &err);
    pthread_mutex_lock(&records->lock);
    if (r == 0) {
        records->store = store;
        memcpy(records->secret, al_store_secret(store), sizeof records->secret);
        records->trouble[0] = '\0';
    } else {
        al_err_copy_text(records->trouble, sizeof records->trouble, err.text);
    }
    if (note[0] != '\0') {
        memcpy(records->set_aside, note, sizeof note);
    }
    pthread_mutex_unlock(&records->lock);
    return r;
}

/* --- putting and getting --- */

static size_t room_for(const struct al_record *record)
{
    return al_status_is_terminal((enum al_status)record->status) ? AL_RECORDS_QUEUE_MAX
                                                                 : AL_RECORDS_QUEUE_MAX / 4 * 3;
}

void al_records_put(struct al_records *records, const struct al_record_key *key, const uint8_t *job,
                    size_t len)
{
    struct al_record record;
    struct al_entry *replaced = NULL;
    struct al_entry *entry = NULL;
    if (al_record_make(key, job, len, &record) == 0) {
        entry = al_entry_create(&record);
    }
    pthread_mutex_lock(&records->lock);
    bool taken = entry && al_overlay_put(&records->overlay, entry, room_for(&record), &replaced);
    if (!taken) {
        records->dropped++;
    } else if (records->overlay.waiting_bytes >= records->wake_bytes) {
        records->wake_bytes = SIZE_MAX;
        pthread_cond_signal(&records->work);
    }
    pthread_mutex_unlock(&records->lock);
    al_entry_unref(taken ? replaced : entry);
}

static struct al_entry *find_waiting(struct al_records *records, uint64_t id)
{
    pthread_mutex_lock(&records->lock);
    struct al_entry *entry = al_overlay_find(&records->overlay, id);
    if (entry) {
        al_entry_ref(entry);
    }
    pthread_mutex_unlock(&records->lock);
    return entry;
}

static bool belongs_to(const struct al_record *record, const char *tenant)
{
    return record->tenant_len == strlen(tenant) &&
           memcmp(record->tenant, tenant, record->tenant_len) == 0;
}

int al_records_get(struct al_records *records, const char *tenant, const char *id,
                   struct al_buf *ret_job)
{
    uint64_t number;
    if (al_record_parse_id(id, &number) < 0) {
        return -ENOENT;
    }
    struct al_entry *entry = find_waiting(records, number);
    if (entry) {
        int r = belongs_to(&entry->record, tenant)
                    ? al_buf_append(ret_job, entry->record.job, entry->record.job_len)
                    : -ENOENT;
        al_entry_unref(entry);
        return r;
    }
    struct al_store *store = records_enter(records);
    if (!store) {
        return -EIO;
    }
    int r = al_store_get(store, tenant, number, ret_job);
    records_leave(records);
    return r;
}

void al_records_stats(struct al_records *records, struct al_records_stats *ret)
{
    *ret = (struct al_records_stats){0};
    struct al_store_figures figures = {0};
    pthread_mutex_lock(&records->lock);
    if (records->store) {
        al_store_figures(records->store, &figures);
    }
    ret->count = figures.count;
    ret->bytes = figures.bytes;
    ret->corrupt = figures.corrupt + records->figures.corrupt;
    ret->expired = figures.expired + records->figures.expired;
    ret->waiting = records->overlay.n;
    ret->written = records->written;
    ret->dropped = records->dropped;
    ret->working = records->trouble[0] == '\0';
    memcpy(ret->trouble, records->trouble, sizeof ret->trouble);
    memcpy(ret->set_aside, records->set_aside, sizeof ret->set_aside);
    pthread_mutex_unlock(&records->lock);
}
