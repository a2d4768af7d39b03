#include "backends/launcher/runtime.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "backends/base/io.h"

static char folder[] = "/tmp/runtime-XXXXXX";

/* A program that answers --version with the script's output. */
static const char *make_program(const char *name, const char *script)
{
    static char paths[8][64];
    static size_t n;
    char *path = paths[n++ % 8], text[512];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    int len = snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, text, (size_t)len), 0);
    close(fd);
    return path;
}

static struct al_runtime runtime(const char *program, const char *compiler)
{
    struct al_runtime rt = {.info = {.name = "x", .code_file = "x"}};
    rt.argv.word[rt.argv.n++] = (char *)program;
    if (compiler) {
        rt.compile.word[rt.compile.n++] = (char *)compiler;
    }
    return rt;
}

static void probe_one(struct al_cells_config *c, struct al_runtime rt)
{
    memset(c, 0, sizeof *c);
    c->runtimes[0] = rt;
    c->n_runtimes = 1;
    al_runtimes_probe(c);
}

struct row {
    const char *name;
    const char *script;
    const char *version;
};

static const struct row rows[] = {
    {"python", "echo Python 3.11.2", "3.11.2"},
    {"node", "echo v18.19.0", "18.19.0"},
    {"bash", "echo 'GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)'", "5.2.15"},
    {"on_stderr", "echo openjdk 17.0.1 >&2", "17.0.1"},
    {"whole_numbers_are_no_versions", "echo 64 bit, 2023, 1.2", "1.2"},
    {"point_at_the_end", "echo version 1.2.", "1.2"},
    {"no_number", "echo hello", "unknown"},
    {"nothing", "exit 1", "unknown"},
    {"only_whole_numbers", "echo 7", "unknown"},
    {"too_long", "printf '1.%0100d' 0", "unknown"},
    {"much_output", "yes 'a b c' | head -c 100000; echo 1.2", "unknown"},
    {"environment_is_clean", "env | grep -c SECRET_OF_THE_TEST; echo 1.2", "1.2"},
};

static void test_version(void **state)
{
    const struct row *row = *state;
    struct al_cells_config c;
    probe_one(&c, runtime(make_program("program", row->script), NULL));
    assert_int_equal(c.n_runtimes, 1);
    assert_string_equal(c.runtimes[0].info.version, row->version);
}

static void test_given_version__is_not_asked_for(void **state)
{
    (void)state;
    struct al_cells_config c;
    struct al_runtime rt = runtime(make_program("program", "echo 1.2"), NULL);
    strcpy(rt.info.version, "9");
    probe_one(&c, rt);
    assert_string_equal(c.runtimes[0].info.version, "9");
}

static void test_compiled__has_both_versions(void **state)
{
    (void)state;
    struct al_cells_config c;
    const char *node = make_program("node", "echo v18.19.0");
    const char *esbuild = make_program("esbuild", "echo 0.17.0");
    probe_one(&c, runtime(node, esbuild));
    assert_string_equal(c.runtimes[0].info.version, "0.17.0+node.18.19.0");
}

static void test_compiled_to_a_program__has_the_compilers_version(void **state)
{
    (void)state;
    struct al_cells_config c;
    probe_one(&c, runtime("{output}", make_program("go", "echo go version go1.19.8")));
    assert_int_equal(c.n_runtimes, 1);
    assert_string_equal(c.runtimes[0].info.version, "1.19.8");
}

static void test_missing__is_left_out_and_the_rest_stays(void **state)
{
    (void)state;
    struct al_cells_config c = {.n_runtimes = 4};
    const char *there = make_program("program", "echo 1.2");
    c.runtimes[0] = runtime("/nonexistent/x", NULL);
    c.runtimes[1] = runtime(there, NULL);
    c.runtimes[2] = runtime(there, "/nonexistent/compiler");
    c.runtimes[3] = runtime(there, NULL);
    strcpy(c.runtimes[3].info.name, "last");
    al_runtimes_probe(&c);
    assert_int_equal(c.n_runtimes, 2);
    assert_string_equal(c.runtimes[0].info.version, "1.2");
    assert_string_equal(c.runtimes[1].info.name, "last");
}

static void test_hanging__is_given_up(void **state)
{
    (void)state;
    struct al_cells_config c;
    int64_t start_ms = al_now_ms();
    probe_one(&c, runtime(make_program("program", "echo 1.2; exec sleep 60"), NULL));
    assert_in_range(al_now_ms() - start_ms, 4500, 9000);
    assert_string_equal(c.runtimes[0].info.version, "1.2");
}

#define ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_version__is_not_asked_for),
        cmocka_unit_test(test_compiled__has_both_versions),
        cmocka_unit_test(test_compiled_to_a_program__has_the_compilers_version),
        cmocka_unit_test(test_missing__is_left_out_and_the_rest_stays),
        cmocka_unit_test(test_hanging__is_given_up),
    };
    static struct CMUnitTest table[ROWS];
    if (!mkdtemp(folder) || chmod(folder, 0755) < 0) { /* probes run as nobody */
        return 1;
    }
    setenv("SECRET_OF_THE_TEST", "x.1", 1);
    for (size_t i = 0; i < ROWS; i++) {
        table[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_version, .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("runtime rows", table, NULL, NULL);
    char command[4][64];
    static const char *const names[] = {"program", "node", "esbuild", "go"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(command[i], sizeof command[i], "%s/%s", folder, names[i]);
        unlink(command[i]);
    }
    rmdir(folder);
    return failed;
}
