#include "service/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#define ARGS(...) ((char *[]){"airlockd", __VA_ARGS__, NULL})

/* Parses and configures; fails the test when that is refused. */
static void configure(char **argv, struct al_config *ret)
{
    struct al_options options;
    struct al_err err = {0};
    int argc = 0;
    while (argv[argc]) {
        argc++;
    }
    if (al_options_parse(argc, argv, &options, &err) < 0 ||
        al_options_configure(&options, ret, &err) < 0)
    {
        fail_msg("refused: %s", err.text);
    }
}

static void assert_refused(char **argv, int argc, const char *text)
{
    struct al_options options;
    struct al_config config;
    struct al_err err = {0};
    assert_true(al_options_parse(argc, argv, &options, &err) < 0 ||
                al_options_configure(&options, &config, &err) < 0);
    assert_string_equal(err.text, text);
}

static void test_configure__keeps_defaults(void **state)
{
    (void)state;
    struct al_config config;
    configure((char *[]){"airlockd", NULL}, &config);
    assert_string_equal(config.data_dir, "/var/lib/airlock");
    assert_int_equal(config.n_listen, 1);
    assert_string_equal(config.listen[0], "127.0.0.1:50051");
}

/* The launcher, which works in another folder, is given the same path. */
static void test_configure__makes_data_dir_absolute(void **state)
{
    (void)state;
    struct al_config config;
    assert_int_equal(chdir("/usr"), 0);
    configure(ARGS("--data-dir", "data/here"), &config);
    assert_string_equal(config.data_dir, "/usr/data/here");
    configure(ARGS("--data-dir", "/data"), &config);
    assert_string_equal(config.data_dir, "/data");
}

static void test_configure__listen_replaces(void **state)
{
    (void)state;
    struct al_config config;
    configure(ARGS("--listen", "[::1]:1", "--listen=unix:/x"), &config);
    assert_int_equal(config.n_listen, 2);
    assert_string_equal(config.listen[0], "[::1]:1");
    assert_string_equal(config.listen[1], "unix:/x");
}

static void test_parse__says_what_is_wrong(void **state)
{
    (void)state;
    assert_refused(ARGS("--nonsense"), 2, "--nonsense: no such option");
    assert_refused(ARGS("--listen"), 2, "--listen: needs a value");
    assert_refused(ARGS("here"), 2, "here: not an option");
    assert_refused(ARGS("--data-dir", ""), 3, "--data-dir: 1 to 255 bytes from the root");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configure__keeps_defaults),
        cmocka_unit_test(test_configure__makes_data_dir_absolute),
        cmocka_unit_test(test_configure__listen_replaces),
        cmocka_unit_test(test_parse__says_what_is_wrong),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
