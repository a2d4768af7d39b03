#include "backends/docker/engine_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/docker/http_head.h"

#define OPEN_MS 10000

struct al_hijack {
    CURL *curl;
    curl_socket_t fd;
    uint8_t data[AL_HTTP_HEAD_MAX]; /* the head, and what came with it */
    size_t start, end;
};

ssize_t al_hijack_read(struct al_hijack *h, void *data, size_t n)
{
    size_t got = h->end - h->start;
    if (got > 0) {
        got = got < n ? got : n;
        memcpy(data, h->data + h->start, got);
        h->start += got;
        return (ssize_t)got;
    }
    CURLcode code = curl_easy_recv(h->curl, data, n, &got);
    return code == CURLE_OK ? (ssize_t)got : code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

ssize_t al_hijack_write(struct al_hijack *h, const void *data, size_t n)
{
    size_t put = 0;
    CURLcode code = curl_easy_send(h->curl, data, n, &put);
    return code == CURLE_OK ? (ssize_t)put : code == CURLE_AGAIN ? -EAGAIN : -ECONNRESET;
}

int al_hijack_fd(const struct al_hijack *h)
{
    return h->fd;
}

void al_hijack_close(struct al_hijack *h)
{
    if (h) {
        curl_easy_cleanup(h->curl);
        free(h);
    }
}

static int wait_for(const struct al_hijack *h, short events, int64_t until_ms, struct al_err *err)
{
    struct pollfd pfd = {.fd = h->fd, .events = events};
    int64_t left_ms = until_ms - al_now_ms();
    if (left_ms <= 0 || poll(&pfd, 1, (int)left_ms) == 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "docker daemon: no answer to attach");
    }
    return 0;
}

static int send_all(struct al_hijack *h, const char *text, int64_t until_ms, struct al_err *err)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t put = al_hijack_write(h, text, left);
        if (put == -EAGAIN) {
            int rc = wait_for(h, POLLOUT, until_ms, err);
            if (rc < 0) {
                return rc;
            }
            continue;
        }
        if (put < 0) {
            return al_err_errno(err, (int)-put, "docker daemon: attach");
        }
        text += put;
        left -= (size_t)put;
    }
    return 0;
}

/* What is not 101 or 200 has a body with the reason. */
static int refused(struct al_hijack *h, int status, size_t head, struct al_err *err)
{
    struct al_engine_answer answer = {.status = status};
    al_buf_init(&answer.body, sizeof h->data);
    al_buf_append_some(&answer.body, h->data + head, h->end - head);
    int rc = al_engine_refused(&answer, "attach", err);
    al_buf_finish(&answer.body);
    return rc;
}

static int read_head(struct al_hijack *h, int64_t until_ms, struct al_err *err)
{
    for (;;) {
        size_t got = 0;
        CURLcode code = curl_easy_recv(h->curl, h->data + h->end, sizeof h->data - h->end, &got);
        if (code == CURLE_AGAIN) {
            int rc = wait_for(h, POLLIN, until_ms, err);
            if (rc < 0) {
                return rc;
            }
            continue;
        }
        if (code != CURLE_OK || got == 0) {
            return al_err_set(err, AL_ERR_INTERNAL, "docker daemon: attach: connection closed");
        }
        h->end += got;
        int status;
        size_t len;
        int rc = al_http_head_read(h->data, h->end, &status, &len);
        if (rc < 0) {
            return al_err_set(err, AL_ERR_INTERNAL, "docker daemon: attach: not an HTTP answer");
        }
        if (rc > 0) {
            h->start = len;
            return status == 101 || status == 200 ? 0 : refused(h, status, len, err);
        }
    }
}

static int connect_to(const struct al_engine *e, struct al_hijack *h, struct al_err *err)
{
    char detail[CURL_ERROR_SIZE] = "";
    al_engine_aim(e, h->curl);
    curl_easy_setopt(h->curl, CURLOPT_URL, e->base);
    curl_easy_setopt(h->curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)OPEN_MS);
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, detail);
    CURLcode code = curl_easy_perform(h->curl);
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, NULL);
    if (code == CURLE_OK) {
        code = curl_easy_getinfo(h->curl, CURLINFO_ACTIVESOCKET, &h->fd);
    }
    return code == CURLE_OK ? 0 : al_engine_failed(e, code, detail, err);
}

int al_hijack_open(struct al_engine *e, const char *path, struct al_hijack **ret,
                   struct al_err *err)
{
    char request[512];
    int64_t until_ms = al_now_ms() + OPEN_MS;
    struct al_hijack *h = calloc(1, sizeof *h);
    if (!h || !(h->curl = curl_easy_init())) {
        free(h);
        return al_err_errno(err, ENOMEM, "docker");
    }
    snprintf(request, sizeof request,
             "POST /v1.%u%s HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
             "Content-Length: 0\r\n\r\n",
             e->api, path);
    int rc = connect_to(e, h, err);
    rc = rc < 0 ? rc : send_all(h, request, until_ms, err);
    rc = rc < 0 ? rc : read_head(h, until_ms, err);
    if (rc < 0) {
        al_hijack_close(h);
        return rc;
    }
    *ret = h;
    return 0;
}
