/* For engine.c and hijack.c only. */
#pragma once

#include <pthread.h>

#include <curl/curl.h>

#include "backends/docker/engine.h"

#define AL_ENGINE_IDLE_MAX 64 /* connections kept for the next call */

struct al_engine {
    const struct al_docker_config *config;
    unsigned api; /* 1.N; 0: not settled yet */
    char version[32];
    char base[320];       /* "http://docker", "https://HOST:PORT" */
    pthread_mutex_t lock; /* guards what follows */
    CURL *idle[AL_ENGINE_IDLE_MAX];
    size_t n_idle;
};

/* Where to connect to, and with which certificates. */
void al_engine_aim(const struct al_engine *engine, CURL *curl);

/* An error that libcurl has met. Returns as al_err_set. */
int al_engine_failed(const struct al_engine *engine, CURLcode code, const char *detail,
                     struct al_err *err);
