/* Policies, files, bounds, and what a human reads. */
#include "service/gate/gate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/service/gate/gate_support.h"

#define TWO "a = 'http://api.good.com:8080/'\nb = 'http://evil.com/'"

static void allow(struct al_job_spec *spec, const char *const *hosts, size_t n)
{
    spec->network = AL_NETWORK_ALLOWLIST;
    spec->hosts = hosts;
    spec->n_hosts = n;
}

static void assert_allowed(const char *code, const char *host, const char *found)
{
    struct al_job_spec spec = gate_spec("python", code);
    allow(&spec, &host, 1);
    assert_found(&spec, found);
}

static void test_policy__none_blocks_all(void **state)
{
    (void)state;
    struct al_job_spec spec = gate_spec("python", TWO);
    assert_found(&spec, "url api.good.com:8080 1!, url evil.com 2!");
}

static void test_policy__unrestricted_blocks_nothing(void **state)
{
    (void)state;
    struct al_job_spec spec = gate_spec("python", TWO);
    spec.network = AL_NETWORK_UNRESTRICTED;
    assert_found(&spec, "url api.good.com:8080 1, url evil.com 2");
}

static void test_policy__empty_allowlist_blocks_all(void **state)
{
    (void)state;
    struct al_job_spec spec = gate_spec("python", TWO);
    allow(&spec, NULL, 0);
    assert_found(&spec, "url api.good.com:8080 1!, url evil.com 2!");
}

static void test_policy__allowlist(void **state)
{
    (void)state;
    assert_allowed(TWO, "good.com", "url api.good.com:8080 1, url evil.com 2!");
    assert_allowed(TWO, "*.Good.com", "url api.good.com:8080 1, url evil.com 2!");
    assert_allowed(TWO, "good.com:8080", "url api.good.com:8080 1, url evil.com 2!");
    assert_allowed(TWO, "good.com:80", "url api.good.com:8080 1!, url evil.com 2!");
    assert_allowed(TWO, "evil.com:80", "url api.good.com:8080 1!, url evil.com 2");
    assert_allowed("'http://b\xc3\xbc"
                   "cher.de'",
                   "xn--bcher-kva.de", "url xn--bcher-kva.de 1");
    assert_allowed("f'http://{a}.good.com'", "good.com", "url *.good.com 1");
    assert_allowed("'http://good.com:80@evil.com'", "good.com", "url evil.com 1!");
}

static void test_policy__blocks_of_addresses(void **state)
{
    (void)state;
    assert_allowed("'10.1.2.3'", "10.0.0.0/8", "address 10.1.2.3 1");
    assert_allowed("'11.1.2.3'", "10.0.0.0/8", "address 11.1.2.3 1!");
    assert_allowed("'http://0x0a010203/'", "10.0.0.0/8", "url 10.1.2.3 1");
    assert_allowed("'http://[2001:db8::1]/'", "2001:db8::/32", "url 2001:db8::1 1");
    assert_allowed("'http://[2001:db9::1]/'", "2001:db8::/32", "url 2001:db9::1 1!");
    assert_allowed("'169.254.169.254'", "*", "address 169.254.169.254 1!");
}

static void test_languages__by_name_then_by_file(void **state)
{
    (void)state;
    const char *code = "# http://a.com\nx = 'evil.com:80 http://b.com'";
    struct al_job_spec spec = gate_spec("python-next", code);
    assert_found(&spec, "host_port evil.com:80 2!, url b.com 2!");
    spec.language = gate_language("other");
    assert_found(&spec, "url a.com 1!, url b.com 2!");
}

static struct al_file file_of(const char *path, const char *content)
{
    return (struct al_file){.path = path,
                            .content = {.data = (const uint8_t *)content, .len = strlen(content)},
                            .mode = 0644};
}

static void test_files__programs_are_read(void **state)
{
    (void)state;
    const struct al_file files[] = {
        file_of("a.py", "# http://no.com\n'http://py.com'"),
        file_of("d/b.mjs", "// http://no.com\n`http://js.com`"),
        file_of("c.TS", "'http://ts.com'"),
        file_of("d.sh", "# http://no.com\ncurl http://sh.com"),
        file_of("data.json", "\"http://data.com\""),
        file_of("py", "'http://data.com'"),
        file_of("empty.py", ""),
    };
    struct al_job_spec spec = gate_spec("python", "x = 'http://code.com'");
    spec.files = files;
    spec.n_files = sizeof files / sizeof files[0];
    assert_found(&spec, "url code.com 1!, url py.com 2! of a.py, url js.com 2! of d/b.mjs, "
                        "url ts.com 1! of c.TS, url sh.com 2! of d.sh");
}

static void test_explain__code_and_file(void **state)
{
    (void)state;
    char text[128];
    struct al_gate_finding f = {.host = "evil.com", .line = 7, .rule = "url", .blocks = true};
    al_gate_explain(&f, text, sizeof text);
    assert_string_equal(text, "egress to evil.com is not allowed (line 7 of the code, rule url)");
    f.file = "lib/a\n\xff.py";
    al_gate_explain(&f, text, sizeof text);
    assert_string_equal(
        text, "egress to evil.com is not allowed (line 7 of lib/a\\x0a\\xff.py, rule url)");
    al_gate_explain(&f, text, 10);
    assert_string_equal(text, "egress to");
}

static char *repeat(const char *piece, size_t n, const char *last)
{
    size_t len = strlen(piece);
    char *text = malloc(len * n + strlen(last) + 1);
    assert_non_null(text);
    for (size_t i = 0; i < len * n; i++) {
        text[i] = piece[i % len];
    }
    memcpy(text + n * len, last, strlen(last) + 1);
    return text;
}

static void scan(const struct al_job_spec *spec, void (*check)(const struct al_gate_report *))
{
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
    struct al_gate_report report;
    assert_int_equal(al_gate_scan(spec, arena, &report), 0);
    check(&report);
}

static void check_last_blocks(const struct al_gate_report *report)
{
    assert_true(report->truncated);
    assert_int_equal(report->n, AL_GATE_FINDINGS_MAX);
    assert_ptr_equal(report->block, &report->findings[AL_GATE_FINDINGS_MAX - 1]);
    assert_string_equal(report->block->host, "evil.com");
    assert_int_equal(report->block->line, 1001);
}

static void test_bounds__the_block_is_kept(void **state)
{
    (void)state;
    const char *good = "good.com";
    char *code = repeat("'http://good.com'\n", 1000, "'http://evil.com'");
    struct al_job_spec spec = gate_spec("python", code);
    allow(&spec, &good, 1);
    scan(&spec, check_last_blocks);
    free(code);
}

static void check_half_is_weak(const struct al_gate_report *report)
{
    assert_true(report->truncated);
    assert_int_equal(report->n, AL_GATE_FINDINGS_MAX / 2 + 1);
    assert_string_equal(report->block->host, "evil.com");
}

static void test_bounds__weak_ones_leave_room(void **state)
{
    (void)state;
    char *code = repeat("'a.py'\n", 1000, "'http://evil.com'");
    struct al_job_spec spec = gate_spec("python", code);
    scan(&spec, check_half_is_weak);
    free(code);
}

static void check_blocked(const struct al_gate_report *report)
{
    assert_non_null(report->block);
}

static void test_bounds__too_many_to_judge_are_blocked(void **state)
{
    (void)state;
    static const char *hosts[256];
    for (size_t i = 0; i < 256; i++) {
        hosts[i] = "good.com";
    }
    char *code = repeat("'http://good.com'\n", 1025, "");
    struct al_job_spec spec = gate_spec("python", code);
    allow(&spec, hosts, 256);
    scan(&spec, check_blocked);
    free(code);
}

static void test_bounds__no_memory(void **state)
{
    (void)state;
    struct al_job_spec spec = gate_spec("python", TWO);
    struct al_gate_report report = {.n = 77};
    for (size_t budget = 0; budget < AL_GATE_FINDINGS_MAX * sizeof(struct al_gate_finding);
         budget += 1000)
    {
        al_auto_arena struct al_arena *arena = al_arena_create(budget);
        assert_int_equal(al_gate_scan(&spec, arena, &report), -ENOMEM);
        assert_int_equal(report.n, 77);
    }
}

/* Input that would need a stack, or time in the square of its length. */
static void test_bounds__deep_and_long(void **state)
{
    (void)state;
    static const struct {
        const char *language, *piece;
    } rows[] = {
        {"python", "f'{"},
        {"python", "f\"\"\"{(["},
        {"python", "f'{a:{"},
        {"python", "'a' +"},
        {"python", "('a'\n"},
        {"python", "'\\"},
        {"python", "}"},
        {"python", "'a' # \n"},
        {"javascript", "`${"},
        {"javascript", "=/["},
        {"javascript", "/*"},
        {"javascript", "(/ "},
        {"javascript", "'a' + /**/"},
        {"javascript", "   /"},
        {"bash", "$("},
        {"bash", "\"$("},
        {"bash", "${a:-"},
        {"bash", "`\""},
        {"bash", "<<A "},
        {"bash", "<<A\n"},
        {"bash", "((("},
        {"bash", "case a in "},
        {"other", "://"},
        {"other", "http://a@"},
        {"other", "http://{"},
        {"other", "a://,"},
        {"other", "http://%"},
        {"other", "http:////"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
        char *code = repeat(rows[i].piece, (1 << 20) / strlen(rows[i].piece), "");
        struct al_job_spec spec = gate_spec(rows[i].language, code);
        struct al_gate_report report;
        spec.network = AL_NETWORK_UNRESTRICTED;
        assert_int_equal(al_gate_scan(&spec, arena, &report), 0);
        free(code);
    }
}

static void check_found_at_the_end(const struct al_gate_report *report)
{
    assert_non_null(report->block);
    assert_string_equal(report->block->host, "evil.com");
}

static void test_bounds__found_however_deep(void **state)
{
    (void)state;
    static const char *const rows[][3] = {{"python", "f'{", "\"http://evil.com/\""},
                                          {"javascript", "`${", "'http://evil.com/'"},
                                          {"bash", "\"$(", "curl http://evil.com/"}};
    for (size_t i = 0; i < 3; i++) {
        char *code = repeat(rows[i][1], 1000, rows[i][2]);
        struct al_job_spec spec = gate_spec(rows[i][0], code);
        scan(&spec, check_found_at_the_end);
        free(code);
    }
}

static void check_nothing(const struct al_gate_report *report)
{
    assert_int_equal(report->n, 0);
    assert_null(report->block);
    assert_false(report->truncated);
}

static void test_bytes__any(void **state)
{
    (void)state;
    static const char code[] = "\0'\0http://evil.com/\0\xff\xfe'\0";
    struct al_job_spec spec = gate_spec("python", "");
    spec.code = (struct al_bytes){.data = (const uint8_t *)code, .len = sizeof code};
    assert_found(&spec, "url evil.com 1!");
    spec.code = (struct al_bytes){0};
    scan(&spec, check_nothing);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy__none_blocks_all),
        cmocka_unit_test(test_policy__unrestricted_blocks_nothing),
        cmocka_unit_test(test_policy__empty_allowlist_blocks_all),
        cmocka_unit_test(test_policy__allowlist),
        cmocka_unit_test(test_policy__blocks_of_addresses),
        cmocka_unit_test(test_languages__by_name_then_by_file),
        cmocka_unit_test(test_files__programs_are_read),
        cmocka_unit_test(test_explain__code_and_file),
        cmocka_unit_test(test_bounds__the_block_is_kept),
        cmocka_unit_test(test_bounds__weak_ones_leave_room),
        cmocka_unit_test(test_bounds__too_many_to_judge_are_blocked),
        cmocka_unit_test(test_bounds__no_memory),
        cmocka_unit_test(test_bounds__deep_and_long),
        cmocka_unit_test(test_bounds__found_however_deep),
        cmocka_unit_test(test_bytes__any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
