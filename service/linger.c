#include "service/linger.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct al_linger {
    size_t idle_max;
    size_t idle_bytes_max;
    _Atomic int64_t next_ms; /* not later than the earliest until_ms */

    pthread_mutex_t lock;         /* guards what follows, and the entries' lower half */
    struct al_linger_entry *head; /* the longest unread first, as far as any is unread */
    struct al_linger_entry *tail;
    size_t n_idle; /* ended, and read by nobody */
    size_t idle_bytes;
    bool draining;
};

struct al_linger *al_linger_create(size_t ended_max, size_t ended_bytes_max)
{
    struct al_linger *linger = calloc(1, sizeof *linger);
    if (!linger) {
        return NULL;
    }
    linger->idle_max = ended_max;
    linger->idle_bytes_max = ended_bytes_max;
    atomic_init(&linger->next_ms, INT64_MAX);
    pthread_mutex_init(&linger->lock, NULL);
    return linger;
}

void al_linger_destroy(struct al_linger *linger)
{
    if (linger) {
        assert(!linger->head);
        pthread_mutex_destroy(&linger->lock);
        free(linger);
    }
}

static bool is_idle(const struct al_linger_entry *entry)
{
    return entry->listed && entry->ended && entry->until_ms != INT64_MAX;
}

/* Around every change of what is_idle looks at. */
static void count_out(struct al_linger *linger, const struct al_linger_entry *entry)
{
    if (is_idle(entry)) {
        linger->n_idle--;
        linger->idle_bytes -= entry->bytes;
    }
}

static void count_in(struct al_linger *linger, const struct al_linger_entry *entry)
{
    if (is_idle(entry)) {
        linger->n_idle++;
        linger->idle_bytes += entry->bytes;
    }
}

static void append(struct al_linger *linger, struct al_linger_entry *entry)
{
    entry->prev = linger->tail;
    entry->next = NULL;
    *(linger->tail ? &linger->tail->next : &linger->head) = entry;
    linger->tail = entry;
    entry->listed = true;
    count_in(linger, entry);
}

static void unlink_entry(struct al_linger *linger, struct al_linger_entry *entry)
{
    count_out(linger, entry);
    *(entry->prev ? &entry->prev->next : &linger->head) = entry->next;
    *(entry->next ? &entry->next->prev : &linger->tail) = entry->prev;
    entry->prev = entry->next = NULL;
    entry->listed = false;
}

static void give_up(struct al_linger *linger, struct al_linger_entry *entry,
                    struct al_linger_entry **chain)
{
    unlink_entry(linger, entry);
    entry->next = *chain;
    *chain = entry;
}

/* The oldest idle entry, of the same tenant if that has another one. */
static struct al_linger_entry *find_victim(const struct al_linger *linger,
                                           const struct al_linger_entry *entry)
{
    struct al_linger_entry *oldest = NULL;
    const char *tenant = al_job_tenant(entry->job);
    for (struct al_linger_entry *e = linger->head; e; e = e->next) {
        if (is_idle(e) && e != entry && strcmp(al_job_tenant(e->job), tenant) == 0) {
            return e;
        }
        if (is_idle(e) && !oldest) {
            oldest = e;
        }
    }
    return oldest;
}

/* Gives up what is too much after the entry has become idle. */
static struct al_linger_entry *make_room(struct al_linger *linger,
                                         const struct al_linger_entry *entry)
{
    struct al_linger_entry *chain = NULL;
    while (linger->n_idle > 0 && (linger->draining || linger->n_idle > linger->idle_max ||
                                  linger->idle_bytes > linger->idle_bytes_max))
    {
        give_up(linger, find_victim(linger, entry), &chain);
    }
    return chain;
}

void al_linger_add(struct al_linger *linger, struct al_linger_entry *entry)
{
    atomic_fetch_add(&entry->refs, 1);
    pthread_mutex_lock(&linger->lock);
    entry->until_ms = INT64_MAX;
    append(linger, entry);
    pthread_mutex_unlock(&linger->lock);
}

bool al_linger_remove(struct al_linger *linger, struct al_linger_entry *entry)
{
    pthread_mutex_lock(&linger->lock);
    bool was_listed = entry->listed;
    if (was_listed) {
        unlink_entry(linger, entry);
    }
    pthread_mutex_unlock(&linger->lock);
    return was_listed;
}

struct al_linger_entry *al_linger_find(struct al_linger *linger, const char *tenant,
                                       const char *job_id)
{
    pthread_mutex_lock(&linger->lock);
    struct al_linger_entry *entry = linger->head;
    while (entry && (strcmp(al_job_id(entry->job), job_id) != 0 ||
                     strcmp(al_job_tenant(entry->job), tenant) != 0))
    {
        entry = entry->next;
    }
    if (entry) {
        atomic_fetch_add(&entry->refs, 1);
    }
    pthread_mutex_unlock(&linger->lock);
    return entry;
}

int64_t al_linger_read(struct al_linger *linger, struct al_linger_entry *entry)
{
    pthread_mutex_lock(&linger->lock);
    int64_t until_ms = entry->listed ? entry->until_ms : -1;
    count_out(linger, entry);
    entry->until_ms = INT64_MAX;
    pthread_mutex_unlock(&linger->lock);
    return until_ms;
}

struct al_linger_entry *al_linger_unread(struct al_linger *linger, struct al_linger_entry *entry,
                                         int64_t until_ms)
{
    struct al_linger_entry *chain = NULL;
    pthread_mutex_lock(&linger->lock);
    if (entry->listed) {
        unlink_entry(linger, entry);
        entry->until_ms = until_ms;
        append(linger, entry);
        if (until_ms < atomic_load(&linger->next_ms)) {
            atomic_store(&linger->next_ms, until_ms);
        }
        chain = make_room(linger, entry);
    }
    pthread_mutex_unlock(&linger->lock);
    return chain;
}

struct al_linger_entry *al_linger_ended(struct al_linger *linger, struct al_linger_entry *entry,
                                        size_t bytes)
{
    pthread_mutex_lock(&linger->lock);
    entry->ended = true;
    entry->bytes = bytes;
    count_in(linger, entry);
    struct al_linger_entry *chain = make_room(linger, entry);
    pthread_mutex_unlock(&linger->lock);
    return chain;
}

struct al_linger_entry *al_linger_expire(struct al_linger *linger, int64_t now_ms)
{
    struct al_linger_entry *chain = NULL;
    int64_t next_ms = INT64_MAX;
    pthread_mutex_lock(&linger->lock);
    for (struct al_linger_entry *entry = linger->head; entry;) {
        struct al_linger_entry *next = entry->next;
        if (entry->until_ms <= now_ms) {
            give_up(linger, entry, &chain);
        } else if (entry->until_ms < next_ms) {
            next_ms = entry->until_ms;
        }
        entry = next;
    }
    atomic_store(&linger->next_ms, next_ms);
    pthread_mutex_unlock(&linger->lock);
    return chain;
}

int64_t al_linger_next_ms(const struct al_linger *linger)
{
    return atomic_load(&linger->next_ms);
}

struct al_linger_entry *al_linger_drain(struct al_linger *linger)
{
    struct al_linger_entry *chain = NULL;
    pthread_mutex_lock(&linger->lock);
    linger->draining = true;
    for (struct al_linger_entry *entry = linger->head; entry;) {
        struct al_linger_entry *next = entry->next;
        if (is_idle(entry)) {
            give_up(linger, entry, &chain);
        }
        entry = next;
    }
    pthread_mutex_unlock(&linger->lock);
    return chain;
}
