/* The head of an HTTP/1 answer to a request to take a connection over. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define AL_HTTP_HEAD_MAX (16u << 10)

/* 1 when the head is complete: its status, and the length up to what follows the blank line; 0 when
 * more bytes are needed; -EBADMSG when it is none, or longer than AL_HTTP_HEAD_MAX. */
int al_http_head_read(const uint8_t *data, size_t n, int *ret_status, size_t *ret_len);
