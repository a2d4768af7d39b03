#include "service/fair_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256u

/* One lane of one tenant. While tasks wait in it, it stands in the ring of its lane. */
struct al_tenant_queue {
    struct al_task *head;
    struct al_task *tail;
    struct tenant *tenant;
    struct al_tenant_queue *prev;
    struct al_tenant_queue *next;
};

/* A tenant that waits: freed with its last task. */
struct tenant {
    struct tenant *next; /* in its bucket */
    uint32_t bucket;
    uint32_t waiting;
    struct al_tenant_queue lanes[AL_LANES];
    char name[];
};

struct al_fair_queue {
    uint32_t max;
    uint32_t tenant_max;
    uint32_t waiting;
    struct al_tenant_queue *turn[AL_LANES]; /* circular; NULL when empty */
    struct tenant *buckets[BUCKETS];
};

struct al_fair_queue *al_fair_queue_create(uint32_t max, uint32_t tenant_max)
{
    struct al_fair_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return NULL;
    }
    queue->max = max;
    queue->tenant_max = tenant_max;
    return queue;
}

void al_fair_queue_destroy(struct al_fair_queue *queue)
{
    assert(!queue || queue->waiting == 0);
    free(queue);
}

/* FNV-1a. A caller who finds collisions only makes its own look-ups slower: at most `max` tenants
 * are here. */
static uint32_t bucket_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return hash % BUCKETS;
}

static struct tenant *find_tenant(const struct al_fair_queue *queue, uint32_t bucket,
                                  const char *name)
{
    struct tenant *tenant = queue->buckets[bucket];
    while (tenant && strcmp(tenant->name, name) != 0) {
        tenant = tenant->next;
    }
    return tenant;
}

static struct tenant *add_tenant(struct al_fair_queue *queue, uint32_t bucket, const char *name)
{
    size_t size = strlen(name) + 1;
    struct tenant *tenant = calloc(1, sizeof *tenant + size);
    if (!tenant) {
        return NULL;
    }
    memcpy(tenant->name, name, size);
    for (int lane = 0; lane < AL_LANES; lane++) {
        tenant->lanes[lane].tenant = tenant;
    }
    tenant->bucket = bucket;
    tenant->next = queue->buckets[bucket];
    queue->buckets[bucket] = tenant;
    return tenant;
}

static void drop_tenant(struct al_fair_queue *queue, struct tenant *tenant)
{
    struct tenant **link = &queue->buckets[tenant->bucket];
    while (*link != tenant) {
        link = &(*link)->next;
    }
    *link = tenant->next;
    free(tenant);
}

/* The tenant's turn comes after everyone who waits already. */
static void enter_ring(struct al_tenant_queue **turn, struct al_tenant_queue *own)
{
    if (!*turn) {
        own->prev = own->next = own;
        *turn = own;
        return;
    }
    own->next = *turn;
    own->prev = (*turn)->prev;
    own->prev->next = own;
    own->next->prev = own;
}

static void leave_ring(struct al_tenant_queue **turn, struct al_tenant_queue *own)
{
    if (*turn == own) {
        *turn = own->next == own ? NULL : own->next;
    }
    own->prev->next = own->next;
    own->next->prev = own->prev;
}

int al_fair_queue_push(struct al_fair_queue *queue, struct al_task *task)
{
    if (queue->waiting >= queue->max) {
        return -EAGAIN;
    }
    uint32_t bucket = bucket_of(task->tenant);
    struct tenant *tenant = find_tenant(queue, bucket, task->tenant);
    if ((tenant ? tenant->waiting : 0) >= queue->tenant_max) {
        return -EDQUOT;
    }
    if (!tenant && !(tenant = add_tenant(queue, bucket, task->tenant))) {
        return -ENOMEM;
    }
    struct al_tenant_queue *own = &tenant->lanes[task->lane];
    if (!own->head) {
        enter_ring(&queue->turn[task->lane], own);
    }
    task->queue = own;
    task->next = NULL;
    task->prev = own->tail;
    *(own->tail ? &own->tail->next : &own->head) = task;
    own->tail = task;
    tenant->waiting++;
    queue->waiting++;
    return 0;
}

struct al_task *al_fair_queue_peek(const struct al_fair_queue *queue, enum al_lane lane)
{
    return queue->turn[lane] ? queue->turn[lane]->head : NULL;
}

void al_fair_queue_remove(struct al_fair_queue *queue, struct al_task *task)
{
    struct al_tenant_queue *own = task->queue;
    struct al_tenant_queue **turn = &queue->turn[task->lane];
    bool was_up = *turn == own && own->head == task;
    *(task->prev ? &task->prev->next : &own->head) = task->next;
    *(task->next ? &task->next->prev : &own->tail) = task->prev;
    task->queue = NULL;
    if (!own->head) {
        leave_ring(turn, own);
    } else if (was_up) {
        *turn = own->next;
    }
    queue->waiting--;
    if (--own->tenant->waiting == 0) {
        drop_tenant(queue, own->tenant);
    }
}

size_t al_fair_queue_length(const struct al_fair_queue *queue)
{
    return queue->waiting;
}
