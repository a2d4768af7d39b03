#include "backends/launcher/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/io.h"

static int read_bytes(struct al_cells_config *c, const char *text, size_t len, struct al_err *err)
{
    char path[] = "/tmp/cells-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, text, len), 0);
    close(fd);
    int rc = al_cells_config_read(c, path, err);
    unlink(path);
    return rc;
}

static void read_good(struct al_cells_config *c, const char *text)
{
    struct al_err err = {0};
    if (read_bytes(c, text, strlen(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static const struct al_runtime *runtime_of(const struct al_cells_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_runtimes; i++) {
        if (strcmp(c->runtimes[i].info.name, name) == 0) {
            return &c->runtimes[i];
        }
    }
    fail_msg("no runtime %s", name);
    return NULL;
}

static void assert_words(const struct al_words *words, const char *joined)
{
    char text[1024] = "";
    for (size_t i = 0; i < words->n; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s", i > 0 ? " " : "", words->word[i]);
    }
    assert_string_equal(text, joined);
    assert_null(words->word[words->n]);
}

/* --- what is accepted --- */

static void test_read__defaults(void **state)
{
    (void)state;
    struct al_cells_config c;
    assert_int_equal(al_cells_config_read(&c, NULL, NULL), 0);
    assert_int_equal(c.n_runtimes, 4);
    assert_int_equal(c.jobs_max, 2048);
    assert_int_equal(c.maxima.wall_ms, 3600000);
    assert_false(c.allow_unsafe);
    assert_string_equal(c.jails[AL_JAIL_BUBBLEWRAP].program, "/usr/bin/bwrap");
    assert_false(c.jails[AL_JAIL_BUBBLEWRAP].allow_known_escapes);
    assert_string_equal(c.jails[AL_JAIL_FIREJAIL].program, "/usr/bin/firejail");
    assert_false(c.jails[AL_JAIL_FIREJAIL].allow_known_escapes);
    assert_string_equal(c.cgroup_parent, "");
    assert_int_equal(c.require, AL_LAYERS_ALL);
    assert_words(&c.system_paths,
                 "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc/alternatives /etc/ld.so.cache");
    const struct al_runtime *ts = runtime_of(&c, "typescript");
    assert_words(&ts->compile, "/usr/bin/esbuild {code} --outfile={output} --bundle "
                               "--platform=node --format=cjs --packages=external "
                               "--log-level=warning --color=false");
    assert_words(&ts->argv, "/usr/bin/node {output}");
    assert_string_equal(ts->info.output_file, "main.js");
    const struct al_runtime *py = runtime_of(&c, "python");
    assert_string_equal(py->info.aliases[0], "python3");
    assert_string_equal(py->info.aliases[1], "py");
    assert_string_equal(py->info.aliases[2], "");
    assert_string_equal(py->info.version, "");
    al_cells_config_finish(&c);
}

static const char every_key[] = "[cells]\n"
                                "uid_base = 65536\n"
                                "jobs_max = 4096\n"
                                "cgroup_parent = a/b\n"
                                "require = seccomp\n  userns cgroup_memory\n"
                                "system_paths = /usr\n"
                                "  /opt/x /opt/y\n"
                                "[local]\n"
                                "allow_unsafe = yes\n"
                                "[bubblewrap]\n"
                                "program = /opt/bwrap\n"
                                "allow_known_escapes = yes\n"
                                "[firejail]\n"
                                "program =\n"
                                "allow_known_escapes = true\n"
                                "[maxima]\n"
                                "cpu_seconds = 1.5\n"
                                "wall_seconds = 0.001\n"
                                "memory_mb = 2\n"
                                "pids = 3\n"
                                "file_size_mb = 4\n"
                                "open_files = 8\n"
                                "disk_mb = 6\n"
                                "output_kb = 7\n"
                                "[runtime go]\n"
                                "version = 1.2+A_b-c\n"
                                "aliases = golang\n"
                                "  g\n"
                                "compile = /bin/go build\n"
                                "  {code}\n"
                                "argv = {output}\n"
                                "code_file = main.go\n"
                                "output_file = main\n";

static void test_read__every_key(void **state)
{
    (void)state;
    struct al_cells_config c;
    read_good(&c, every_key);
    assert_int_equal(c.uid_base, 65536);
    assert_int_equal(c.jobs_max, 4096);
    assert_string_equal(c.cgroup_parent, "a/b");
    assert_int_equal(c.require, AL_LAYER_SECCOMP | AL_LAYER_USERNS | AL_LAYER_CGROUP_MEMORY);
    assert_words(&c.system_paths, "/usr /opt/x /opt/y");
    assert_true(c.allow_unsafe);
    assert_string_equal(c.jails[AL_JAIL_BUBBLEWRAP].program, "/opt/bwrap");
    assert_true(c.jails[AL_JAIL_BUBBLEWRAP].allow_known_escapes);
    assert_string_equal(c.jails[AL_JAIL_FIREJAIL].program, "");
    assert_true(c.jails[AL_JAIL_FIREJAIL].allow_known_escapes);
    assert_int_equal(c.maxima.cpu_ms, 1500);
    assert_int_equal(c.maxima.wall_ms, 1);
    assert_int_equal(c.maxima.memory_mb, 2);
    assert_int_equal(c.maxima.pids, 3);
    assert_int_equal(c.maxima.file_size_mb, 4);
    assert_int_equal(c.maxima.open_files, 8);
    assert_int_equal(c.maxima.disk_mb, 6);
    assert_int_equal(c.n_runtimes, 5);
    const struct al_runtime *go = runtime_of(&c, "go");
    assert_string_equal(go->info.version, "1.2+A_b-c");
    assert_string_equal(go->info.aliases[0], "golang");
    assert_string_equal(go->info.aliases[1], "g");
    assert_string_equal(go->info.aliases[2], "");
    assert_words(&go->compile, "/bin/go build {code}");
    assert_words(&go->argv, "{output}");
    assert_string_equal(go->info.code_file, "main.go");
    assert_string_equal(go->info.output_file, "main");
    al_cells_config_finish(&c);
}

static void test_runtime_section__replaces_the_builtin_as_a_whole(void **state)
{
    (void)state;
    struct al_cells_config c;
    read_good(&c, "[runtime typescript]\nargv = /x {code}\ncode_file = a.ts\n"
                  "[cells]\njobs_max = 5\n"
                  "[runtime typescript]\nversion = 9\n");
    assert_int_equal(c.n_runtimes, 4);
    const struct al_runtime *ts = runtime_of(&c, "typescript");
    assert_words(&ts->argv, "/x {code}");
    assert_int_equal(ts->compile.n, 0);
    assert_string_equal(ts->info.aliases[0], "");
    assert_string_equal(ts->info.output_file, "");
    assert_string_equal(ts->info.version, "9");
    assert_string_equal(runtime_of(&c, "python")->info.code_file, "main.py");
    al_cells_config_finish(&c);
}

static void test_find_runtime__exact_name_and_version(void **state)
{
    (void)state;
    struct al_cells_config c;
    read_good(&c, "[runtime python]\nargv = /x\ncode_file = x\nversion = 3.11\n"
                  "[runtime py]\nargv = /y\ncode_file = x\nversion = 3\n");
    assert_ptr_equal(al_cells_config_runtime(&c, "python@3.11"), runtime_of(&c, "python"));
    assert_ptr_equal(al_cells_config_runtime(&c, "py@3"), runtime_of(&c, "py"));
    static const char *const none[] = {"python",       "python@",      "python@3", "py@3.11",
                                       "python@3.11.", "python@3.11@", "@3.11",    "",
                                       "pyth@3.11"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_null(al_cells_config_runtime(&c, none[i]));
    }
    al_cells_config_finish(&c);
}

/* --- what is refused, and in which words --- */

struct row {
    const char *name;
    const char *text;
    const char *error; /* after the path; NULL: accepted */
};

#define X10(s) s s s s s s s s s s
#define CHARS190      \
    X10("xxxxxxxxxx") \
    X10("xxxxxxxx")   \
    "xxxxxxxxxx"
#define RT       "[runtime go]\nargv = /go {code}\ncode_file = main.go\n"
#define TWICE    "given twice (an indented line continues the key above it)"
#define BAD_NAME "not a runtime's name; allowed: a-z 0-9 . _ + -"

static const struct row rows[] = {
    {"empty", "", NULL},
    {"byte_order_mark", "\xef\xbb\xbf[cells]\njobs_max = 7\n", NULL},
    {"crlf", "[cells]\r\njobs_max = 7\r\n", NULL},
    {"comments", "# a\n; b\n[cells]\njobs_max = 7 ; c\n  # d\n", NULL},
    {"airlockds_sections", "[server]\nrun_slots = x\n[limits]\na = b\n[defaults]\nc = d\n", NULL},
    {"airlockds_stores", "[gate]\na = b\n[cache]\na = b\n[records]\na = b\na = c\n", NULL},
    {"airlockds_quotas", "[quota]\na = b\n[tenant x]\na = b\na = c\n", NULL},
    {"tenant_without_a_name", "[tenant]\na = b\n", ":2: [tenant] a: unknown section or key"},
    {"airlockds_maxima", "[maxima]\noutput_kb = x\nunheard_of = y\n", NULL},
    {"airlockds_lists", "[server]\nlisten = a\n  b\nlisten = c\n", NULL},

    /* lines */
    {"longest_line", "[server]\nx = " CHARS190 "1234\n", NULL},
    {"line_too_long", "[server]\nx = " CHARS190 "12345\n", ":2: the line is longer than 198 bytes"},
    {"long_comment", "#" CHARS190 CHARS190 "\n", ":1: the line is longer than 198 bytes"},
    {"longest_section", "[runtime " X10("abcd") "x]\nargv = /x\ncode_file = x\n", NULL},
    {"section_too_long", "\n[runtime " X10("abcd") "xy]\nargv = /x\ncode_file = x\n",
     ":2: the section's name is longer than 49 bytes"},
    {"no_value", "[cells]\njobs_max\n", ":2: neither [section] nor key = value"},
    {"first_error_wins", "[cells]\njobs_max\nuid_base = 1\n",
     ":3: [cells] uid_base: not a whole number in range; allowed: 65536 to 2147000000"},
    {"unclosed_section", "[cells\n", ":1: neither [section] nor key = value"},

    /* keys */
    {"unknown_section", "[cell]\njobs_max = 1\n", ":2: [cell] jobs_max: unknown section or key"},
    {"unknown_key", "[cells]\njobmax = 1\n", ":2: [cells] jobmax: unknown section or key"},
    {"key_of_another_section", "[local]\njobs_max = 1\n",
     ":2: [local] jobs_max: unknown section or key"},
    {"unknown_key_of_runtime", RT "arg = x\n", ":4: [runtime go] arg: unknown section or key"},
    {"runtime_without_a_name", "[runtime]\nargv = /x\n",
     ":2: [runtime] argv: unknown section or key"},
    {"runtime_with_an_empty_name", "[runtime ]\nargv = /x\n", ":2: [runtime ] argv: " BAD_NAME},
    {"runtime_with_a_bad_name", "[runtime Go!]\nargv = /x\n", ":2: [runtime Go!] argv: " BAD_NAME},
    {"runtime_with_a_spaced_name", "[runtime a b]\nargv = /x\n",
     ":2: [runtime a b] argv: " BAD_NAME},
    {"before_any_section", "jobs_max = 1\n", ":1: [] jobs_max: unknown section or key"},
    {"twice", "[cells]\njobs_max = 1\njobs_max = 1\n", ":3: [cells] jobs_max: " TWICE},
    {"twice_apart", "[cells]\njobs_max = 1\n[local]\n[cells]\njobs_max = 1\n",
     ":5: [cells] jobs_max: " TWICE},
    {"list_twice", RT "argv = /x\n", ":4: [runtime go] argv: " TWICE},
    {"scalar_continued", "[cells]\njobs_max = 1\n  2\n",
     ":3: [cells] jobs_max: has one value only"},

    /* whole numbers */
    {"jobs_max_least", "[cells]\njobs_max = 1\n", NULL},
#define JOBS_MAX ":2: [cells] jobs_max: not a whole number in range; allowed: 1 to 4096"
    {"jobs_max_too_small", "[cells]\njobs_max = 0\n", JOBS_MAX},
    {"jobs_max_too_large", "[cells]\njobs_max = 4097\n", JOBS_MAX},
    {"jobs_max_negative", "[cells]\njobs_max = -1\n", JOBS_MAX},
    {"jobs_max_fraction", "[cells]\njobs_max = 1.5\n", JOBS_MAX},
    {"jobs_max_exponent", "[cells]\njobs_max = 1e2\n", JOBS_MAX},
    {"jobs_max_hexadecimal", "[cells]\njobs_max = 0x10\n", JOBS_MAX},
    {"jobs_max_nan", "[cells]\njobs_max = nan\n", JOBS_MAX},
    {"jobs_max_text", "[cells]\njobs_max = many\n", JOBS_MAX},
    {"jobs_max_empty", "[cells]\njobs_max =\n", JOBS_MAX},
    {"jobs_max_huge", "[cells]\njobs_max = 99999999999999999999999\n", JOBS_MAX},
    {"uid_base_too_small", "[cells]\nuid_base = 65535\n",
     ":2: [cells] uid_base: not a whole number in range; allowed: 65536 to 2147000000"},
    {"uid_base_too_large", "[cells]\nuid_base = 2147000001\n",
     ":2: [cells] uid_base: not a whole number in range; allowed: 65536 to 2147000000"},
    {"memory_mb_none", "[maxima]\nmemory_mb = 0\n",
     ":2: [maxima] memory_mb: not a whole number in range; allowed: 1 to 1048576"},
    {"memory_mb_too_large", "[maxima]\nmemory_mb = 1048577\n",
     ":2: [maxima] memory_mb: not a whole number in range; allowed: 1 to 1048576"},
    {"memory_mb_largest", "[maxima]\nmemory_mb = 1048576\n", NULL},
    {"pids_too_many", "[maxima]\npids = 65537\n",
     ":2: [maxima] pids: not a whole number in range; allowed: 1 to 65536"},
    {"file_size_mb_none", "[maxima]\nfile_size_mb = 0\n",
     ":2: [maxima] file_size_mb: not a whole number in range; allowed: 1 to 1048576"},
    {"open_files_too_few", "[maxima]\nopen_files = 7\n",
     ":2: [maxima] open_files: not a whole number in range; allowed: 8 to 1048576"},
    {"disk_mb_none", "[maxima]\ndisk_mb = 0\n",
     ":2: [maxima] disk_mb: not a whole number in range; allowed: 1 to 1048576"},

    /* seconds */
    {"seconds_largest", "[maxima]\ncpu_seconds = 604800\n", NULL},
    {"seconds_too_many", "[maxima]\ncpu_seconds = 604800.5\n",
     ":2: [maxima] cpu_seconds: not a number in range; allowed: 0.001 to 604800"},
    {"seconds_none", "[maxima]\nwall_seconds = 0\n",
     ":2: [maxima] wall_seconds: not a number in range; allowed: 0.001 to 604800"},
    {"seconds_nan", "[maxima]\nwall_seconds = nan\n",
     ":2: [maxima] wall_seconds: not a number in range; allowed: 0.001 to 604800"},
    {"seconds_infinite", "[maxima]\nwall_seconds = inf\n",
     ":2: [maxima] wall_seconds: not a number in range; allowed: 0.001 to 604800"},
    {"seconds_bare_point", "[maxima]\nwall_seconds = 1.\n",
     ":2: [maxima] wall_seconds: not a number in range; allowed: 0.001 to 604800"},

    /* the rest */
    {"bool_yes", "[local]\nallow_unsafe = yes\n", NULL},
    {"bool_false", "[local]\nallow_unsafe = false\n", NULL},
    {"bool_other", "[local]\nallow_unsafe = on\n",
     ":2: [local] allow_unsafe: not a truth value; allowed: yes, no"},
    {"tool_none", "[bubblewrap]\nprogram =\n", NULL},
    {"tool_relative", "[bubblewrap]\nprogram = bwrap\n",
     ":2: [bubblewrap] program: not the path of a program; allowed: an absolute path, or nothing"},
    {"tool_unknown_key", "[bubblewrap]\nargs = x\n",
     ":2: [bubblewrap] args: unknown section or key"},
    {"cgroup_parent_empty", "[cells]\ncgroup_parent =\n", NULL},
    {"require_nothing", "[cells]\nrequire =\n", NULL},
    {"require_unknown", "[cells]\nrequire = seccomp landlock\n",
     ":2: [cells] require: not a layer; allowed: the names that `isolation` has"},
    {"system_path_relative", "[cells]\nsystem_paths = /usr lib\n",
     ": [cells] system_paths: lib is not an absolute path without '..'"},
    {"system_path_up", "[cells]\nsystem_paths = /usr/../etc\n",
     ": [cells] system_paths: /usr/../etc is not an absolute path without '..'"},
    {"code_file_in_a_folder", RT "output_file = a/b\n",
     ":4: [runtime go] output_file: not a plain file name; allowed: no '/', no leading '.'"},
    {"code_file_hidden", "[runtime go]\nargv = /x\ncode_file = .x\n",
     ":3: [runtime go] code_file: not a plain file name; allowed: no '/', no leading '.'"},
    {"code_file_empty", "[runtime go]\nargv = /x\ncode_file =\n",
     ":3: [runtime go] code_file: not a plain file name; allowed: no '/', no leading '.'"},
    {"code_file_too_long", "[runtime go]\nargv = /x\ncode_file = " X10("abcdef") "abcd\n",
     ":3: [runtime go] code_file: too long"},
    {"code_file_longest", "[runtime go]\nargv = /x\ncode_file = " X10("abcdef") "abc\n", NULL},
    {"version_empty", RT "version =\n",
     ":4: [runtime go] version: not a version; allowed: A-Z a-z 0-9 . _ + -"},
    {"version_with_a_space", RT "version = 1 2\n",
     ":4: [runtime go] version: not a version; allowed: A-Z a-z 0-9 . _ + -"},
    {"version_with_an_at", RT "version = 1@2\n",
     ":4: [runtime go] version: not a version; allowed: A-Z a-z 0-9 . _ + -"},
    {"version_too_long", RT "version = " X10("abcdef") "abcd\n",
     ":4: [runtime go] version: too long"},
    {"aliases_most", RT "aliases = a b c\n  d\n", NULL},
    {"aliases_too_many", RT "aliases = a b c d e\n",
     ":4: [runtime go] aliases: too many words; allowed: at most 4"},
    {"aliases_too_many_on_two_lines", RT "aliases = a b c\n  d e\n",
     ":5: [runtime go] aliases: too many words; allowed: at most 1"},
    {"alias_invalid", RT "aliases = go@1\n",
     ":4: [runtime go] aliases: not an alias; allowed: a-z 0-9 . _ + -"},
    {"alias_too_long", RT "aliases = " X10("abcdef") "abcd\n",
     ":4: [runtime go] aliases: too long"},
    {"argv_longest",
     "[runtime go]\ncode_file = x\nargv = /x 2 3 4 5 6 7 8 9 10 11 12\n"
     "  13 14 15 16 17 18 19 20 21 22 23 24\n",
     NULL},
    {"argv_too_long",
     "[runtime go]\ncode_file = x\nargv = /x 2 3 4 5 6 7 8 9 10 11 12\n"
     "  13 14 15 16 17 18 19 20 21 22 23 24 25\n",
     ":4: [runtime go] argv: too many words; allowed: at most 24"},
    {"argv_comment_behind_an_indented_line",
     "[runtime go]\ncode_file = x\nargv = /x\n  a ; comment\n",
     ":4: [runtime go] argv: a comment behind an indented line"},
    {"argv_missing", "[runtime go]\ncode_file = x\n", ": [runtime go] argv: missing"},
    {"argv_empty", "[runtime go]\ncode_file = x\nargv =\n", ": [runtime go] argv: missing"},
    {"argv_relative", "[runtime go]\ncode_file = x\nargv = go\n",
     ": [runtime go] argv: the program is not an absolute path"},
    {"compile_relative", RT "compile = go\noutput_file = x\n",
     ": [runtime go] compile: the program is not an absolute path"},
    {"code_file_missing", "[runtime go]\nargv = /x\n", ": [runtime go] code_file: missing"},
    {"output_file_missing", RT "compile = /go\n", ": [runtime go] output_file: missing"},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct al_cells_config c;
    struct al_err err = {0};
    int rc = read_bytes(&c, row->text, strlen(row->text), &err);
    if (!row->error) {
        if (rc < 0) {
            fail_msg("%s", err.text);
        }
        al_cells_config_finish(&c);
        return;
    }
    assert_true(rc < 0);
    assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.text + strcspn(err.text, ":"), row->error);
}

static void test_read__too_many_runtimes(void **state)
{
    (void)state;
    char text[4096] = "";
    struct al_cells_config c;
    struct al_err err = {0};
    for (int i = 0; i < AL_RUNTIMES_MAX - 4; i++) {
        snprintf(text + strlen(text), 64, "[runtime r%d]\nargv = /x\ncode_file = x\n", i);
    }
    read_good(&c, text);
    assert_int_equal(c.n_runtimes, AL_RUNTIMES_MAX);
    al_cells_config_finish(&c);
    snprintf(text + strlen(text), 64, "[runtime more]\nargv = /x\n");
    assert_true(read_bytes(&c, text, strlen(text), &err) < 0);
    assert_non_null(
        strstr(err.text, "[runtime more] argv: too many runtimes; allowed: at most 32"));
}

static void test_read__nul(void **state)
{
    (void)state;
    static const char text[] = "[cells]\ncgroup_parent = a\0b\n";
    struct al_cells_config c;
    struct al_err err = {0};
    assert_true(read_bytes(&c, text, sizeof text - 1, &err) < 0);
    assert_string_equal(err.text + strcspn(err.text, ":"), ":2: a NUL byte");
}

static void test_read__missing_and_huge_files(void **state)
{
    (void)state;
    static char newlines[300 << 10];
    struct al_cells_config c;
    struct al_err err = {0};
    assert_true(al_cells_config_read(&c, "/nonexistent/a", &err) < 0);
    assert_string_equal(err.text, "/nonexistent/a: No such file or directory");
    assert_true(al_cells_config_read(&c, "/nonexistent/a", NULL) < 0);
    err = (struct al_err){0};
    memset(newlines, '\n', sizeof newlines);
    assert_true(read_bytes(&c, newlines, sizeof newlines, &err) < 0);
    assert_string_equal(err.text + strcspn(err.text, ":"), ": File too large");
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read__defaults),
        cmocka_unit_test(test_read__every_key),
        cmocka_unit_test(test_runtime_section__replaces_the_builtin_as_a_whole),
        cmocka_unit_test(test_find_runtime__exact_name_and_version),
        cmocka_unit_test(test_read__too_many_runtimes),
        cmocka_unit_test(test_read__nul),
        cmocka_unit_test(test_read__missing_and_huge_files),
    };
    static struct CMUnitTest table[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        table[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("config", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("config rows", table, NULL, NULL);
}
