#include "backends/docker/http_head.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define BEGIN "HTTP/1."

/* "HTTP/1.1 101", or as much of it as there is. */
static int read_status(const uint8_t *data, size_t n)
{
    static const char shape[] = BEGIN "d ddd";
    int status = 0;
    for (size_t i = 0; i < n && i < sizeof shape - 1; i++) {
        bool digit = shape[i] == 'd';
        if (digit ? !isdigit(data[i]) : data[i] != (uint8_t)shape[i]) {
            return -EBADMSG;
        }
        status = digit && i > sizeof BEGIN ? status * 10 + (data[i] - '0') : status;
    }
    return status;
}

int al_http_head_read(const uint8_t *data, size_t n, int *ret_status, size_t *ret_len)
{
    int status = read_status(data, n);
    if (status < 0) {
        return status;
    }
    const uint8_t *end = n > 0 ? memmem(data, n, "\r\n\r\n", 4) : NULL;
    size_t len = end ? (size_t)(end - data) + 4 : n;
    if (len > AL_HTTP_HEAD_MAX || (end && len < sizeof BEGIN "1 101")) {
        return -EBADMSG;
    }
    if (!end) {
        return n == AL_HTTP_HEAD_MAX ? -EBADMSG : 0;
    }
    *ret_status = status;
    *ret_len = len;
    return 1;
}
