#include "backends/docker/engine_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/docker/body.h"

#define ANSWER_MAX      (4u << 20)
#define CONNECT_MS      5000L
#define VERSION_MS      10000
#define PATH_PREFIX_MAX 32

struct call {
    const struct al_engine_call *call;
    struct al_buf *body;
};

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
    struct call *c = arg;
    return al_buf_append(c->body, data, size * n) < 0 ? 0 : size * n;
}

static int watch(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct call *call = arg;
    (void)a, (void)b, (void)c, (void)d;
    return call->call->ctl && al_ctl_cancelled(call->call->ctl);
}

void al_engine_aim(const struct al_engine *e, CURL *curl)
{
    const struct al_docker_config *config = e->config;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (strncmp(config->host, "unix://", 7) == 0) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, config->host + 7);
    } else {
        curl_easy_setopt(curl, CURLOPT_CAINFO, config->tls_ca);
        curl_easy_setopt(curl, CURLOPT_SSLCERT, config->tls_cert);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, config->tls_key);
        curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    }
}

/* libcurl speaks of a port 80, and does not say why, when it cannot connect to a socket. */
static const char *explain_socket(const char *path)
{
    return access(path, R_OK | W_OK) < 0 ? strerror(errno) : "nobody listens on it";
}

int al_engine_failed(const struct al_engine *e, CURLcode code, const char *detail,
                     struct al_err *err)
{
    const char *host = e->config->host;
    bool socket = strncmp(host, "unix://", 7) == 0;
    const char *why = code == CURLE_COULDNT_CONNECT && socket ? explain_socket(host + 7)
                      : detail[0] != '\0'                     ? detail
                                                              : curl_easy_strerror(code);
    return al_err_set(err, AL_ERR_INTERNAL, "docker daemon at %s: %s", host, why);
}

static CURL *take_idle(struct al_engine *e)
{
    pthread_mutex_lock(&e->lock);
    CURL *curl = e->n_idle > 0 ? e->idle[--e->n_idle] : NULL;
    pthread_mutex_unlock(&e->lock);
    return curl ? curl : curl_easy_init();
}

static void keep_idle(struct al_engine *e, CURL *curl)
{
    pthread_mutex_lock(&e->lock);
    if (e->n_idle < AL_ENGINE_IDLE_MAX) {
        e->idle[e->n_idle++] = curl;
        curl = NULL;
    }
    pthread_mutex_unlock(&e->lock);
    if (curl) {
        curl_easy_cleanup(curl);
    }
}

static struct curl_slist *set_request(CURL *curl, const struct al_engine_call *call)
{
    char type[128];
    snprintf(type, sizeof type, "Content-Type: %s", call->type ? call->type : "");
    struct curl_slist *headers = curl_slist_append(NULL, type);
    headers = headers ? curl_slist_append(headers, "Expect:") : NULL;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (strcmp(call->method, "POST") == 0) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body ? call->body : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
    } else {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
    }
    return headers;
}

static CURLcode perform(struct al_engine *e, CURL *curl, struct call *c, char *detail)
{
    const struct al_engine_call *call = c->call;
    al_auto_free char *url = NULL;
    char prefix[PATH_PREFIX_MAX] = "";
    if (e->api > 0) {
        snprintf(prefix, sizeof prefix, "/v1.%u", e->api);
    }
    if (asprintf(&url, "%s%s%s", e->base, prefix, call->path) < 0) {
        url = NULL;
        return CURLE_OUT_OF_MEMORY;
    }
    curl_easy_reset(curl); /* the connection stays */
    al_engine_aim(e, curl);
    struct curl_slist *headers = set_request(curl, call);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, c);
    CURLcode code = headers ? curl_easy_perform(curl) : CURLE_OUT_OF_MEMORY;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(headers);
    return code;
}

int al_engine_call(struct al_engine *e, const struct al_engine_call *call,
                   struct al_engine_answer *ret, struct al_err *err)
{
    char detail[CURL_ERROR_SIZE] = "";
    CURL *curl = take_idle(e);
    if (!curl) {
        return al_err_errno(err, ENOMEM, "docker");
    }
    al_buf_init(&ret->body, ANSWER_MAX);
    struct call c = {.call = call, .body = &ret->body};
    CURLcode code = perform(e, curl, &c, detail);
    if (code != CURLE_OK) {
        al_buf_finish(&ret->body);
        curl_easy_cleanup(curl);
        return al_engine_failed(e, code, detail, err);
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret->status);
    keep_idle(e, curl);
    return 0;
}

int al_engine_refused(const struct al_engine_answer *answer, const char *what, struct al_err *err)
{
    char message[256];
    al_docker_read_message((const char *)answer->body.data, answer->body.len, message,
                           sizeof message);
    return al_err_set(err, AL_ERR_INTERNAL, "docker daemon: %s: %ld %s", what, answer->status,
                      message);
}

int al_engine_do(struct al_engine *e, const struct al_engine_call *call, long status,
                 struct al_err *err)
{
    struct al_engine_answer answer;
    int rc = al_engine_call(e, call, &answer, err);
    if (rc < 0) {
        return rc;
    }
    if (status > 0 ? answer.status != status : answer.status >= 300) {
        char what[80];
        snprintf(what, sizeof what, "%s %.*s", call->method, (int)strcspn(call->path, "?"),
                 call->path);
        rc = al_engine_refused(&answer, what, err);
    }
    al_buf_finish(&answer.body);
    return rc;
}

static int settle_version(struct al_engine *e, struct al_err *err)
{
    const struct al_engine_call ask = {
        .method = "GET", .path = "/version", .timeout_ms = VERSION_MS};
    struct al_engine_answer answer;
    unsigned api = 0;
    int rc = al_engine_call(e, &ask, &answer, err);
    if (rc < 0) {
        return rc;
    }
    rc = answer.status == 200
             ? al_docker_read_version((const char *)answer.body.data, answer.body.len, &api, err)
             : al_engine_refused(&answer, "GET /version", err);
    al_buf_finish(&answer.body);
    e->api = rc < 0 ? 0 : api;
    snprintf(e->version, sizeof e->version, "API 1.%u", e->api);
    return rc;
}

int al_engine_create(const struct al_docker_config *config, struct al_engine **ret,
                     struct al_err *err)
{
    struct al_engine *e = calloc(1, sizeof *e);
    if (!e || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(e);
        return al_err_errno(err, ENOMEM, "docker");
    }
    e->config = config;
    pthread_mutex_init(&e->lock, NULL);
    bool tcp = strncmp(config->host, "tcp://", 6) == 0;
    snprintf(e->base, sizeof e->base, "%s%s", tcp ? "https://" : "http://docker",
             tcp ? config->host + 6 : "");
    int rc = settle_version(e, err);
    if (rc < 0) {
        al_engine_destroy(e);
        return rc;
    }
    *ret = e;
    return 0;
}

void al_engine_destroy(struct al_engine *e)
{
    if (!e) {
        return;
    }
    while (e->n_idle > 0) {
        curl_easy_cleanup(e->idle[--e->n_idle]);
    }
    pthread_mutex_destroy(&e->lock);
    free(e);
    curl_global_cleanup();
}

const char *al_engine_version(const struct al_engine *e)
{
    return e->version;
}
