/* What a daemon sends over a connection that was taken over: the answer's head, then docker's own
 * frames. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/docker/http_head.h"
#include "backends/docker/mux.h"

/* --- docker's frames --- */

struct mux_row {
    const char *name;
    const char *data;
    size_t len;
    const char *expected; /* "STREAM:bytes" for each run of one stream, then "=result" */
};

#define DATA(s) s, sizeof(s) - 1

static const struct mux_row mux_rows[] = {
    {"nothing", DATA(""), "=0"},
    {"one", DATA("\1\0\0\0\0\0\0\5hello"), "1:hello=0"},
    {"two_streams", DATA("\1\0\0\0\0\0\0\2ab\2\0\0\0\0\0\0\1c"), "1:ab2:c=0"},
    {"empty_frame", DATA("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\1c"), "2:c=0"},
    {"length_is_big_endian", DATA("\1\0\0\0\0\0\1\0ab"), "1:ab=0"},
    {"cut_head", DATA("\1\0\0"), "=0"},
    {"the_daemons_own_error", DATA("\3\0\0\0\0\0\0\2no"), "3:no=0"},
    {"stream_0", DATA("\0\0\0\0\0\0\0\1x"), "=-74"},
    {"stream_4", DATA("\4\0\0\0\0\0\0\1x"), "=-74"},
    {"no_frames_at_all", DATA("HTTP/1.1 200 OK\r\n"), "=-74"},
    {"byte_that_must_be_0", DATA("\1\0\1\0\0\0\0\1x"), "=-74"},
};

static void read_mux(const struct mux_row *row, size_t piece, char *ret)
{
    struct al_mux m = {.left = 0};
    int rc = 0, last = 0;
    for (size_t at = 0; at < row->len && rc >= 0;) {
        size_t end = at + piece < row->len ? at + piece : row->len;
        while (at < end && rc >= 0) {
            struct al_mux_piece p;
            size_t used = 0;
            rc = al_mux_next(&m, (const uint8_t *)row->data + at, end - at, &used, &p);
            assert_true(used <= end - at && (rc < 0 || used > 0));
            at += used;
            if (rc > 0) {
                ret += last == (int)p.stream ? 0 : sprintf(ret, "%d:", (int)p.stream);
                ret += sprintf(ret, "%.*s", (int)p.len, (const char *)p.data);
                last = (int)p.stream;
            }
        }
    }
    sprintf(ret, "=%d", rc < 0 ? rc : 0);
}

static void test_mux(void **state)
{
    const struct mux_row *row = *state;
    for (size_t piece = 1; piece <= row->len + 1; piece++) {
        char text[256];
        read_mux(row, piece, text);
        assert_string_equal(text, row->expected);
    }
}

/* --- the head --- */

struct head_row {
    const char *name;
    const char *text;
    int rc;
    int status;
    const char *rest;
};

#define UPGRADED                                                                   \
    "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n" \
    "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

static const struct head_row head_rows[] = {
    {"upgraded", UPGRADED, 1, 101, ""},
    {"bytes_behind_it", UPGRADED "\1\2", 1, 101, "\1\2"},
    {"plain_200", "HTTP/1.1 200 OK\r\n\r\nx", 1, 200, "x"},
    {"http_1_0", "HTTP/1.0 404 Not Found\r\n\r\n", 1, 404, ""},
    {"no_reason", "HTTP/1.1 409\r\n\r\n", 1, 409, ""},
    {"not_all_there", "HTTP/1.1 101 UPGRADED\r\nConnection: Up", 0, 0, NULL},
    {"first_bytes", "HTT", 0, 0, NULL},
    {"http_2", "HTTP/2 200\r\n\r\n", -EBADMSG, 0, NULL},
    {"something_else", "220 ftp\r\n", -EBADMSG, 0, NULL},
    {"status_of_letters", "HTTP/1.1 abc\r\n\r\n", -EBADMSG, 0, NULL},
    {"status_too_short", "HTTP/1.1 20\r\n\r\n", -EBADMSG, 0, NULL},
    {"nothing_but_the_end", "\r\n\r\n", -EBADMSG, 0, NULL},
};

static void test_head(void **state)
{
    const struct head_row *row = *state;
    int status = 0;
    size_t len = 0;
    int rc = al_http_head_read((const uint8_t *)row->text, strlen(row->text), &status, &len);
    assert_int_equal(rc, row->rc);
    if (rc > 0) {
        assert_int_equal(status, row->status);
        assert_string_equal(row->text + len, row->rest);
    }
    for (size_t n = 0; n < strlen(row->text) && row->rc > 0 && n < len; n++) {
        assert_int_equal(al_http_head_read((const uint8_t *)row->text, n, &status, &len), 0);
    }
}

static void test_head__that_does_not_end(void **state)
{
    (void)state;
    static uint8_t data[AL_HTTP_HEAD_MAX];
    int status;
    size_t len;
    memset(data, 'x', sizeof data);
    memcpy(data, "HTTP/1.1 200 ", 13);
    assert_int_equal(al_http_head_read(data, sizeof data - 1, &status, &len), 0);
    assert_int_equal(al_http_head_read(data, sizeof data, &status, &len), -EBADMSG);
}

#define N_MUX  (sizeof mux_rows / sizeof mux_rows[0])
#define N_HEAD (sizeof head_rows / sizeof head_rows[0])

int main(void)
{
    struct CMUnitTest tests[N_MUX + N_HEAD + 1] = {cmocka_unit_test(test_head__that_does_not_end)};
    size_t n = 1;
    for (size_t i = 0; i < N_MUX; i++) {
        tests[n++] = (struct CMUnitTest){
            .name = mux_rows[i].name, .test_func = test_mux, .initial_state = (void *)&mux_rows[i]};
    }
    for (size_t i = 0; i < N_HEAD; i++) {
        tests[n++] = (struct CMUnitTest){.name = head_rows[i].name,
                                         .test_func = test_head,
                                         .initial_state = (void *)&head_rows[i]};
    }
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
