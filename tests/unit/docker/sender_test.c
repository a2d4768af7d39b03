/* A job on its way to a container's init; the archive that init itself comes in. */
#include "backends/docker/sender.h"

#include <errno.h>
#include <linux/filter.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/docker/frame.h"
#include "backends/docker/tar.h"
#include "backends/docker/words.h"

static struct sock_filter filter_code[3] = {{.k = 1}, {.k = 2}, {.k = 3}};
static const struct sock_fprog filter = {.len = 3, .filter = filter_code};

static const struct al_container_plan plan = {
    .job = {.version = AL_CONTAINER_VERSION, .n_argv = 2, .n_compile = 1, .cpu_ms = 5},
    .workdir = "/sandbox",
    .code_file = "main.py",
    .compile = {"cc"},
    .argv = {"python3", "/sandbox/main.py"},
};

/* Everything that is sent, as text; content is put together. */
static void send_all(const struct al_job_spec *spec, size_t enough, char *ret)
{
    static struct al_frame_reader r;
    struct al_sender s;
    struct al_buf b;
    al_buf_init(&b, 1 << 20);
    al_frame_reader_init(&r, false);
    assert_int_equal(al_sender_begin(&s, spec, &plan, &filter, &b), 0);
    do {
        assert_int_equal(al_sender_fill(&s, enough, &b), 0);
        for (size_t at = 0, used; at < b.len; at += used) {
            struct al_frame f;
            int rc = al_frame_next(&r, b.data + at, b.len - at, &used, &f);
            assert_true(rc >= 0);
            if (rc == 0) {
                continue;
            }
            if (f.type == AL_FRAME_JOB) {
                ret += sprintf(ret, "job");
            } else if (f.type == AL_FRAME_FILTER) {
                ret += sprintf(ret, " filter %zu", f.len / sizeof filter_code[0]);
            } else if (f.type == AL_FRAME_ITEM) {
                struct al_frame_item item;
                memcpy(&item, f.data, sizeof item);
                ret += sprintf(ret, " [%u %o %.*s]", item.type, item.mode,
                               (int)(f.len - sizeof item), (const char *)f.data + sizeof item);
            } else if (f.type == AL_FRAME_DATA) {
                ret += sprintf(ret, "%.*s", (int)f.len, (const char *)f.data);
            } else {
                ret += sprintf(ret, " %s", f.type == AL_FRAME_GO ? "go" : "?");
            }
        }
        b.len = 0;
    } while (!s.done);
    al_buf_finish(&b);
}

static void test_job__whole_in_its_order(void **state)
{
    (void)state;
    static const struct al_file files[] = {{"a/b", {(const uint8_t *)"two", 3}, 0600},
                                           {"empty", {NULL, 0}, 0755}};
    static const struct al_env env[] = {{"N", "v"}, {"E", ""}};
    static const char *const args[] = {"x", ""};
    static const char *const globs[] = {"*.txt"};
    const struct al_job_spec spec = {.code = {(const uint8_t *)"one", 3},
                                     .files = files,
                                     .n_files = 2,
                                     .inputs_json = "{}",
                                     .env = env,
                                     .n_env = 2,
                                     .args = args,
                                     .n_args = 2,
                                     .artifacts = globs,
                                     .n_artifacts = 1};
    static const char expected[] = "job filter 3 [1 644 ]one [2 600 a/b]two [2 755 empty] [3 0 ]{}"
                                   " [4 0 N]v [4 0 E] [5 0 ]x [5 0 ] [6 0 ]*.txt go";
    char text[512];
    send_all(&spec, 1, text);
    assert_string_equal(text, expected);
    send_all(&spec, 1 << 20, text);
    assert_string_equal(text, expected);
}

static void test_large_file__in_pieces_that_bound_the_buffer(void **state)
{
    (void)state;
    static uint8_t zeros[1 << 20];
    const struct al_job_spec spec = {.code = {zeros, sizeof zeros}};
    struct al_sender s;
    struct al_buf b;
    size_t total = 0;
    al_buf_init(&b, 256 << 10);
    assert_int_equal(al_sender_begin(&s, &spec, &plan, &filter, &b), 0);
    while (!s.done) {
        assert_int_equal(al_sender_fill(&s, 64 << 10, &b), 0);
        assert_true(b.len <= 200 << 10);
        total += b.len;
        b.len = 0;
    }
    assert_in_range(total, sizeof zeros, sizeof zeros + 2048);
    al_buf_finish(&b);
}

/* --- the JOB frame --- */

static void test_plan__comes_back(void **state)
{
    (void)state;
    uint8_t data[512];
    struct al_container_plan got;
    ssize_t n = al_container_job_encode(&plan, data, sizeof data);
    assert_true(n > 0);
    assert_int_equal(al_container_job_decode(data, (size_t)n, &got), 0);
    assert_string_equal(got.workdir, "/sandbox");
    assert_string_equal(got.code_file, "main.py");
    assert_string_equal(got.compile[0], "cc");
    assert_null(got.compile[1]);
    assert_string_equal(got.argv[1], "/sandbox/main.py");
    assert_null(got.argv[2]);
    assert_int_equal(got.job.cpu_ms, 5);
    for (size_t cut = 0; cut < (size_t)n; cut++) {
        assert_int_equal(al_container_job_decode(data, cut, &got), -EBADMSG);
    }
    data[n] = 'x';
    assert_int_equal(al_container_job_decode(data, (size_t)n + 1, &got), -EBADMSG);
    assert_int_equal(al_container_job_encode(&plan, data, (size_t)n - 1), -EFBIG);
}

static void test_plan__of_another_build(void **state)
{
    (void)state;
    uint8_t data[512];
    struct al_container_plan other = plan, got;
    other.job.version++;
    ssize_t n = al_container_job_encode(&other, data, sizeof data);
    assert_int_equal(al_container_job_decode(data, (size_t)n, &got), -EBADMSG);
}

/* --- words --- */

static void test_words__placeholders_and_blanks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *words; /* with '|' between */
    } rows[] = {
        {"python3 {code}", "python3|/a b/c"},
        {"x {code} --out={output} y", "x|/a b/c|--out=/o|y"},
        {"{output}", "/o"},
        {"{code}{output}", "/a b/c/o"},
        {"", ""},
        {"{cod} {", "{cod}|{"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct al_docker_words words;
        char got[128] = "";
        assert_int_equal(al_docker_words_make(&words, rows[i].text, "/a b/c", "/o"), 0);
        for (size_t k = 0; k < words.n; k++) {
            strcat(got, k > 0 ? "|" : "");
            strcat(got, words.word[k]);
        }
        assert_string_equal(got, rows[i].words);
        al_docker_words_finish(&words);
    }
}

/* --- tar --- */

static void test_tar__as_tar_reads_it(void **state)
{
    (void)state;
    struct al_buf b;
    al_buf_init(&b, 1 << 16);
    assert_int_equal(al_tar_add(&b, "Dockerfile", 0644, "FROM x\n", 7), 0);
    assert_int_equal(al_tar_add(&b, "init", 0555, "", 0), 0);
    assert_int_equal(al_tar_end(&b), 0);
    assert_int_equal(b.len, 512 + 512 + 512 + 1024);
    FILE *f = popen("tar -tvf - | awk '{print $1, $3, $6}' | tr '\\n' ';' | "
                    "grep -qx -- '-rw-r--r-- 7 Dockerfile;-r-xr-xr-x 0 init;'",
                    "w");
    assert_non_null(f);
    assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
    assert_int_equal(pclose(f), 0);
    char name[101];
    memset(name, 'n', 100);
    name[100] = '\0';
    assert_int_equal(al_tar_add(&b, name, 0644, "", 0), -EFBIG);
    al_buf_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job__whole_in_its_order),
        cmocka_unit_test(test_large_file__in_pieces_that_bound_the_buffer),
        cmocka_unit_test(test_plan__comes_back),
        cmocka_unit_test(test_plan__of_another_build),
        cmocka_unit_test(test_words__placeholders_and_blanks),
        cmocka_unit_test(test_tar__as_tar_reads_it),
    };
    return cmocka_run_group_tests_name("sender", tests, NULL, NULL);
}
