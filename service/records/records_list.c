/*
 * Theory of operation
 *
 * A page is a merge of two lists, the newest first: what waits in the overlay, and the store. The
 * overlay's part is taken first, so that what is committed in between is in both rather than in
 * neither; of two versions of a job the overlay's counts. All is copied before anybody is called.
 */
#include "service/records/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "service/records/records_internal.h"

#define CORRUPT_MAX 1000 /* skipped before a page ends */

struct page {
    const char *tenant;
    size_t tenant_len;
    int status;
    uint32_t size;
    struct al_record_at before; /* the page begins after this */

    struct al_entry **waiting; /* referenced; of this tenant, of any status */
    size_t n_waiting;
    size_t next_waiting;

    struct al_buf jobs; /* length and bytes of each */
    uint32_t n;
    struct al_record_at last; /* that was dealt with */
    bool full;                /* and there was another one */
    int error;
};

/* --- the overlay's part --- */

static void take_waiting(void *arg, struct al_entry *entry)
{
    struct page *page = arg;
    const struct al_record *record = &entry->record;
    if (record->tenant_len == page->tenant_len &&
        memcmp(record->tenant, page->tenant, page->tenant_len) == 0 &&
        al_record_compare(&record->at, &page->before) < 0)
    {
        page->waiting[page->n_waiting++] = al_entry_ref(entry);
    }
}

static int compare_newest_first(const void *a, const void *b)
{
    return al_record_compare(&(*(struct al_entry *const *)b)->record.at,
                             &(*(struct al_entry *const *)a)->record.at);
}

static int take_overlay(struct al_records *records, struct page *page)
{
    size_t room = 0;
    pthread_mutex_lock(&records->lock);
    while (records->overlay.n > room) { /* it may grow while memory is had without the lock */
        room = records->overlay.n + records->overlay.n / 4 + 16;
        pthread_mutex_unlock(&records->lock);
        free(page->waiting);
        page->waiting = malloc(room * sizeof(struct al_entry *));
        if (!page->waiting) {
            return -ENOMEM;
        }
        pthread_mutex_lock(&records->lock);
    }
    al_overlay_visit(&records->overlay, take_waiting, page);
    pthread_mutex_unlock(&records->lock);
    if (page->n_waiting > 1) {
        qsort(page->waiting, page->n_waiting, sizeof(struct al_entry *), compare_newest_first);
    }
    return 0;
}

/* --- the merge --- */

/* False when the page is full or has failed. */
static bool add(struct page *page, const struct al_record *record)
{
    if (page->status != 0 && record->status != page->status) {
        return true;
    }
    uint32_t len = (uint32_t)record->job_len;
    if (page->n == page->size ||
        (page->n > 0 && page->jobs.len + sizeof len + len > AL_RECORDS_PAGE_BYTES))
    {
        page->full = true;
        return false;
    }
    page->error = al_buf_append(&page->jobs, &len, sizeof len);
    if (page->error == 0) {
        page->error = al_buf_append(&page->jobs, record->job, len);
    }
    page->last = record->at;
    page->n++;
    return page->error == 0;
}

/* Adds what waits and is newer than `at`, all of it for NULL. */
static bool add_waiting(struct page *page, const struct al_record_at *at)
{
    while (page->next_waiting < page->n_waiting) {
        const struct al_record *record = &page->waiting[page->next_waiting]->record;
        if (at && al_record_compare(&record->at, at) <= 0) {
            break;
        }
        if (!add(page, record)) {
            return false;
        }
        page->next_waiting++;
    }
    return true;
}

static bool add_stored(void *arg, const struct al_record *record)
{
    struct page *page = arg;
    if (!add_waiting(page, &record->at)) {
        return false;
    }
    if (page->next_waiting < page->n_waiting &&
        page->waiting[page->next_waiting]->record.at.id == record->at.id)
    {
        return true; /* an older version of what comes next */
    }
    return add(page, record);
}

static int fill(struct al_records *records, struct page *page)
{
    struct al_record_at stopped_at = {0};
    int r = take_overlay(records, page);
    if (r < 0) {
        return r;
    }
    struct al_store *store = records_enter(records);
    if (!store) {
        return -EIO;
    }
    int stopped = al_store_scan(store, page->tenant, page->status, &page->before, CORRUPT_MAX,
                                add_stored, page, &stopped_at);
    records_leave(records);
    if (stopped < 0 || page->full || page->error < 0) {
        return stopped < 0 ? stopped : page->error;
    }
    if (add_waiting(page, stopped ? &stopped_at : NULL) && stopped) {
        page->last = stopped_at;
        page->full = true;
    }
    return page->error;
}

static void finish(struct page *page)
{
    for (size_t i = 0; i < page->n_waiting; i++) {
        al_entry_unref(page->waiting[i]);
    }
    free(page->waiting);
    al_buf_finish(&page->jobs);
}

static int deliver(const struct page *page, int (*each)(void *arg, const uint8_t *job, size_t len),
                   void *arg)
{
    const uint8_t *at = page->jobs.data;
    for (uint32_t i = 0; i < page->n; i++) {
        uint32_t len;
        memcpy(&len, at, sizeof len);
        int r = each(arg, at + sizeof len, len);
        if (r != 0) {
            return r;
        }
        at += sizeof len + len;
    }
    return 0;
}

static void copy_secret(struct al_records *records, uint8_t to[AL_RECORD_SECRET_LEN])
{
    pthread_mutex_lock(&records->lock);
    memcpy(to, records->secret, AL_RECORD_SECRET_LEN);
    pthread_mutex_unlock(&records->lock);
}

int al_records_list(struct al_records *records, const char *tenant, int status, uint32_t page_size,
                    const char *token, int (*each)(void *arg, const uint8_t *job, size_t len),
                    void *arg, char ret_token[AL_RECORDS_TOKEN_MAX])
{
    struct page page = {
        .tenant = tenant,
        .tenant_len = strnlen(tenant, AL_RECORDS_TENANT_MAX + 1),
        .status = status,
        .size = page_size < AL_RECORDS_PAGE_MAX ? page_size : AL_RECORDS_PAGE_MAX,
        .before = {UINT64_MAX, UINT64_MAX},
    };
    uint8_t secret[AL_RECORD_SECRET_LEN];
    char next[AL_RECORDS_TOKEN_MAX] = "";
    copy_secret(records, secret);
    if (page.tenant_len > AL_RECORDS_TENANT_MAX || page_size == 0 || status < 0 ||
        status > UINT8_MAX ||
        (token[0] != '\0' && al_record_read_token(secret, tenant, status, token, &page.before) < 0))
    {
        return -EINVAL;
    }
    al_buf_init(&page.jobs, AL_RECORDS_PAGE_BYTES + AL_RECORDS_JOB_MAX + sizeof(uint32_t));
    int r = fill(records, &page);
    if (r == 0 && page.full) {
        r = al_record_make_token(secret, tenant, status, &page.last, next);
    }
    if (r == 0) {
        r = deliver(&page, each, arg);
    }
    if (r == 0) {
        memcpy(ret_token, next, sizeof next);
    }
    finish(&page);
    return r;
}
