/*
 * Theory of operation
 *
 * One loop: wait until something is to be done, take all that waits, write it in one transaction
 * together with a step of retention, give it back to the overlay as written or as waiting again.
 *
 * Between a first record and its commit lies GATHER_MS, in which others may come; a long queue does
 * not wait. After trouble everything waits RETRY_MS. A store that LMDB gives up is closed once no
 * reader is in it and opened anew, which checks the file.
 */
#include "service/records/records_internal.h"

#include <errno.h>
#include <time.h>

#include "backends/base/clock.h"

#define GATHER_MS    50
#define GATHER_BYTES (AL_RECORDS_QUEUE_MAX / 8)
#define RETRY_MS     1000
#define REOPEN_MS    5000
#define TRIM_MIN_MS  100
#define TRIM_MAX_MS  60000

enum next_open { OPEN_FIRST, OPEN_AGAIN, OPEN_DISTRUSTED };

/* Of the writer's thread alone. */
struct writer {
    struct al_records *records;
    enum next_open next_open;
    int64_t retry_ms; /* not before; 0: no trouble */
    int64_t trim_ms;  /* the next look at the limits */
};

static int64_t trim_interval_ms(const struct al_records *records)
{
    int64_t ms = records->limits.max_age_ms / 8;
    return ms < TRIM_MIN_MS ? TRIM_MIN_MS : ms > TRIM_MAX_MS ? TRIM_MAX_MS : ms;
}

/* With the lock, which waiting gives up. A put ends it once `wake_bytes` wait. */
static void wait_until(struct al_records *records, int64_t ms, size_t wake_bytes)
{
    const struct timespec at = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    records->wake_bytes = wake_bytes;
    (void)pthread_cond_timedwait(&records->work, &records->lock, &at);
    records->wake_bytes = SIZE_MAX;
}

static void gather(struct al_records *records)
{
    int64_t until_ms = al_now_ms() + GATHER_MS;
    while (!records->stopping && records->overlay.waiting_bytes < GATHER_BYTES &&
           al_now_ms() < until_ms)
    {
        wait_until(records, until_ms, GATHER_BYTES);
    }
}

/* Returns when it is time to write, open or trim. */
static void wait_for_work(const struct writer *writer)
{
    struct al_records *records = writer->records;
    while (!records->stopping) {
        int64_t now_ms = al_now_ms();
        if (writer->retry_ms != 0) {
            if (now_ms >= writer->retry_ms) {
                return;
            }
            wait_until(records, writer->retry_ms, SIZE_MAX);
        } else if (records->overlay.n_waiting > 0) {
            gather(records);
            return;
        } else if (now_ms >= writer->trim_ms) {
            return;
        } else {
            wait_until(records, writer->trim_ms, 1);
        }
    }
}

/* Waits for its readers. */
static void close_store(struct al_records *records)
{
    struct al_store_figures figures;
    pthread_mutex_lock(&records->lock);
    struct al_store *store = records->store;
    records->store = NULL;
    while (records->readers > 0) {
        pthread_cond_wait(&records->work, &records->lock);
    }
    al_store_figures(store, &figures);
    records->figures.corrupt += figures.corrupt;
    records->figures.expired += figures.expired;
    pthread_mutex_unlock(&records->lock);
    al_store_close(store);
}

static int open_store(struct writer *writer)
{
    int r = records_open_store(writer->records, writer->next_open != OPEN_FIRST,
                               writer->next_open == OPEN_DISTRUSTED);
    if (r == 0) {
        writer->next_open = OPEN_AGAIN;
    }
    return r;
}

static void set_trouble(struct al_records *records, const struct al_err *err)
{
    pthread_mutex_lock(&records->lock);
    al_err_copy_text(records->trouble, sizeof records->trouble, err->text);
    pthread_mutex_unlock(&records->lock);
}

static int write_entries(struct writer *writer, const struct al_entry *entries)
{
    struct al_records *records = writer->records;
    struct al_err err = {0};
    bool more = false;
    if (!records->store) {
        int r = open_store(writer);
        if (r < 0) {
            writer->retry_ms = al_now_ms() + REOPEN_MS;
            return r;
        }
    }
    int r = al_store_write(records->store, entries, &records->limits, al_wall_ns(), &more, &err);
    if (r < 0) {
        set_trouble(records, &err);
        if (r == -EUCLEAN || r == -ENOTRECOVERABLE) {
            close_store(records);
            writer->next_open = r == -EUCLEAN ? OPEN_DISTRUSTED : OPEN_AGAIN;
        }
        writer->retry_ms = al_now_ms() + RETRY_MS;
        return r;
    }
    writer->retry_ms = 0;
    writer->trim_ms = al_now_ms() + (more ? 0 : trim_interval_ms(records));
    return 0;
}

void *records_write(void *arg)
{
    struct al_records *records = arg;
    struct writer writer = {
        .records = records,
        .next_open = records->store ? OPEN_AGAIN : OPEN_FIRST,
        .retry_ms = records->store ? 0 : al_now_ms() + REOPEN_MS,
    };
    bool last = false;
    pthread_mutex_lock(&records->lock);
    while (!last) {
        wait_for_work(&writer);
        last = records->stopping;
        size_t n = records->overlay.n_waiting;
        struct al_entry *entries = al_overlay_take(&records->overlay);
        pthread_mutex_unlock(&records->lock);
        bool written = write_entries(&writer, entries) == 0;
        pthread_mutex_lock(&records->lock);
        struct al_entry *gone = al_overlay_done(&records->overlay, entries, written);
        if (written) {
            records->written += n;
            records->trouble[0] = '\0';
        }
        pthread_mutex_unlock(&records->lock);
        al_entry_unref_list(gone);
        pthread_mutex_lock(&records->lock);
    }
    pthread_mutex_unlock(&records->lock);
    return NULL;
}
