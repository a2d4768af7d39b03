#include "service/jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Ids are random bits: any of them spread well. A chain has one job on average. */
#define LIVE_JOBS_EXPECTED 2048u

struct al_jobs {
    uint32_t history_max;
    size_t n_buckets; /* a power of two */

    pthread_mutex_t lock; /* guards everything below, and the links of each job in it */
    uint32_t n_ended;
    struct al_job *oldest_ended;
    struct al_job *newest_ended;
    struct al_job *buckets[];
};

struct al_jobs *al_jobs_create(uint32_t history)
{
    size_t n_buckets = 1;
    while (n_buckets < (size_t)history + LIVE_JOBS_EXPECTED) {
        n_buckets *= 2;
    }
    struct al_jobs *jobs = calloc(1, sizeof *jobs + n_buckets * sizeof(struct al_job *));
    if (!jobs) {
        return NULL;
    }
    jobs->history_max = history;
    jobs->n_buckets = n_buckets;
    pthread_mutex_init(&jobs->lock, NULL);
    return jobs;
}

void al_jobs_destroy(struct al_jobs *jobs)
{
    if (!jobs) {
        return;
    }
    for (size_t i = 0; i < jobs->n_buckets; i++) {
        struct al_job *job = jobs->buckets[i];
        while (job) {
            struct al_job *next = al_job_links(job)->next_in_bucket;
            al_job_unref(job);
            job = next;
        }
    }
    pthread_mutex_destroy(&jobs->lock);
    free(jobs);
}

static struct al_job **bucket_of(struct al_jobs *jobs, uint64_t key)
{
    return &jobs->buckets[key & (jobs->n_buckets - 1)];
}

void al_jobs_insert(struct al_jobs *jobs, struct al_job *job)
{
    al_job_ref(job);
    pthread_mutex_lock(&jobs->lock);
    struct al_job **bucket = bucket_of(jobs, al_job_key(job));
    al_job_links(job)->next_in_bucket = *bucket;
    *bucket = job;
    pthread_mutex_unlock(&jobs->lock);
}

/* With the lock held; the table's reference is the caller's then. */
static void unlink_job(struct al_jobs *jobs, struct al_job *job)
{
    struct al_job **link = bucket_of(jobs, al_job_key(job));
    while (*link != job) {
        link = &al_job_links(*link)->next_in_bucket;
    }
    *link = al_job_links(job)->next_in_bucket;
}

void al_jobs_remove(struct al_jobs *jobs, struct al_job *job)
{
    pthread_mutex_lock(&jobs->lock);
    unlink_job(jobs, job);
    pthread_mutex_unlock(&jobs->lock);
    al_job_unref(job);
}

/* The job that is one too many, or NULL. With the lock held. */
static struct al_job *drop_oldest(struct al_jobs *jobs)
{
    if (jobs->n_ended <= jobs->history_max) {
        return NULL;
    }
    struct al_job *oldest = jobs->oldest_ended;
    jobs->oldest_ended = al_job_links(oldest)->next_ended;
    if (!jobs->oldest_ended) {
        jobs->newest_ended = NULL;
    }
    jobs->n_ended--;
    unlink_job(jobs, oldest);
    return oldest;
}

void al_jobs_retire(struct al_jobs *jobs, struct al_job *job)
{
    pthread_mutex_lock(&jobs->lock);
    if (jobs->newest_ended) {
        al_job_links(jobs->newest_ended)->next_ended = job;
    } else {
        jobs->oldest_ended = job;
    }
    jobs->newest_ended = job;
    jobs->n_ended++;
    struct al_job *dropped = drop_oldest(jobs);
    pthread_mutex_unlock(&jobs->lock);
    al_job_unref(dropped);
}

/* The number that the id says; any other string may give any number. */
static uint64_t key_of(const char *id)
{
    uint64_t key = 0;
    for (; *id; id++) {
        unsigned char c = (unsigned char)*id;
        key = key << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return key;
}

struct al_job *al_jobs_find(struct al_jobs *jobs, const char *tenant, const char *id)
{
    uint64_t key = key_of(id);
    pthread_mutex_lock(&jobs->lock);
    struct al_job *job = *bucket_of(jobs, key);
    while (job && strcmp(al_job_id(job), id) != 0) {
        job = al_job_links(job)->next_in_bucket;
    }
    if (job && strcmp(al_job_tenant(job), tenant) != 0) {
        job = NULL;
    }
    if (job) {
        al_job_ref(job);
    }
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

/* References to all jobs, in an array that the caller frees; the number of them. */
static size_t snapshot(struct al_jobs *jobs, struct al_job ***ret)
{
    size_t n = 0;
    size_t cap = 0;
    struct al_job **all = NULL;
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < jobs->n_buckets; i++) {
        for (struct al_job *job = jobs->buckets[i]; job; job = al_job_links(job)->next_in_bucket) {
            if (n == cap) {
                cap = cap ? cap * 2 : 256;
                struct al_job **more = realloc(all, cap * sizeof(struct al_job *));
                if (!more) {
                    goto out;
                }
                all = more;
            }
            all[n++] = al_job_ref(job);
        }
    }
out:
    pthread_mutex_unlock(&jobs->lock);
    *ret = all;
    return n;
}

void al_jobs_cancel_all(struct al_jobs *jobs)
{
    struct al_job **all = NULL;
    size_t n = snapshot(jobs, &all);
    for (size_t i = 0; i < n; i++) {
        (void)al_job_cancel(all[i]);
        al_job_unref(all[i]);
    }
    free(all);
}
