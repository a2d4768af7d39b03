/*
 * Any bytes as what a daemon answers: the head of an answer, and JSON of every kind that is read.
 * What is copied out of it is terminated and within its bounds.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/docker/body.h"
#include "backends/docker/http_head.h"
#include "tests/fuzz/fuzz.h"

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int take_id(void *arg, const char *id)
{
    *(size_t *)arg += strlen(id);
    return 0;
}

static void read_head(const uint8_t *data, size_t len)
{
    int status = 0;
    size_t head = 0;
    int rc = al_http_head_read(data, len, &status, &head);
    if (rc > 0) {
        require(status >= 0 && status <= 999);
        require(head <= len && head <= AL_HTTP_HEAD_MAX &&
                memcmp(data + head - 4, "\r\n\r\n", 4) == 0);
        require(al_http_head_read(data, head, &status, &head) == 1);
    } else {
        require(rc == 0 || rc == -EBADMSG);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *json = (const char *)data;
    char text[32];
    unsigned version = 0;
    size_t ids = 0;
    struct al_err err = {0};
    struct al_docker_state state;
    read_head(data, len);
    if (al_docker_read_version(json, len, &version, &err) == 0) {
        require(version >= AL_DOCKER_API_MIN);
    } else {
        require(al_err_is_set(&err));
    }
    memset(text, 'x', sizeof text);
    al_docker_read_message(json, len, text, sizeof text);
    require(memchr(text, '\0', sizeof text) != NULL);
    if (al_docker_read_string(json, len, "Id", text, sizeof text) == 0) {
        require(memchr(text, '\0', sizeof text) != NULL);
    }
    if (al_docker_read_state(json, len, &state) == 0) {
        require(memchr(state.error, '\0', sizeof state.error) != NULL);
    }
    require(al_docker_read_ids(json, len, take_id, &ids) <= 0 && ids <= len);
    ids = 0;
    require(al_docker_read_tags(json, len, take_id, &ids) <= 0 && ids <= len);
    err = (struct al_err){0};
    require((al_docker_read_build(json, len, &err) < 0) == al_err_is_set(&err));
    return 0;
}
