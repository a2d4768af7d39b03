/* Shared by the files of the records. */
#pragma once

#include <pthread.h>

#include "service/records/overlay.h"
#include "service/records/records.h"
#include "service/records/store.h"

struct al_records {
    char *dir;
    struct al_records_limits limits;
    pthread_t writer;
    pthread_cond_t work;       /* for the writer: something waits, or no reader is left, or stop */
    pthread_mutex_t lock;      /* guards all below */
    struct al_overlay overlay; /* about 32 KiB */
    struct al_store *store;    /* NULL: none for now. Used without the lock while counted below, */
    unsigned readers;          /* and by the writer */
    bool stopping;
    size_t wake_bytes; /* a put wakes the writer when so much waits */
    uint8_t secret[AL_RECORD_SECRET_LEN];
    struct al_store_figures figures; /* of stores that are closed: what counts up */
    uint64_t written, dropped;
    char trouble[256];
    char set_aside[256];
};

/* A use of the store, which does not go away meanwhile; NULL when there is none. */
struct al_store *records_enter(struct al_records *records);
void records_leave(struct al_records *records);

/* Opens the store, if it can be opened. `again`: this process had it open before. On the thread
 * that writes. */
int records_open_store(struct al_records *records, bool again, bool set_aside);

/* The writer's thread. */
void *records_write(void *arg);
