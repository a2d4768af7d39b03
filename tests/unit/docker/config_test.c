/* The keys of [docker] and of [image NAME]. */
#include "backends/docker/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/api/backend.h"

/* "SECTION|KEY|VALUE", with "+" before the key of an indented line; NULL ends them. */
struct row {
    const char *name;
    const char *lines[6];
    const char *error; /* part of it; NULL: the configuration is good */
};

#define TCP  "docker|host|tcp://h:2376"
#define PY   "image python|image|python:3.12-slim"
#define UNIX "docker|host|unix:///run/docker.sock"

static const struct row rows[] = {
    {"nothing", {NULL}, NULL},
    {"a_socket_and_an_image", {UNIX, PY}, NULL},
    {"tcp_with_its_three_files",
     {TCP, "docker|tls_ca|/a", "docker|tls_cert|/b", "docker|tls_key|/c"},
     NULL},
    {"tcp_without_them", {TCP}, "tcp needs tls_ca"},
    {"tcp_without_one", {TCP, "docker|tls_ca|/a", "docker|tls_key|/c"}, "tcp needs"},
    {"another_scheme", {"docker|host|http://h"}, "neither unix"},
    {"relative_socket", {"docker|host|unix://run/docker.sock"}, "neither unix"},
    {"unknown_key", {"docker|hosts|x"}, "unknown key"},
    {"unknown_key_of_an_image", {"image python|imag|x"}, "unknown key"},
    {"given_twice", {UNIX, UNIX}, "given twice"},
    {"given_twice_in_an_image", {PY, PY}, "given twice"},
    {"one_value_only", {UNIX, "docker|+host|x"}, "one value only"},
    {"two_words", {"docker|host|unix:///a b"}, "one word"},
    {"name_of_a_runtime", {"image Python|image|x"}, "not a runtime's name"},
    {"no_name", {"image |image|x"}, "not a runtime's name"},
    {"no_image", {"image python|argv|python3 {code}"}, "image: missing"},
    {"runtime_of_ones_own_needs_more", {"image ruby|image|ruby:3"}, "argv: missing"},
    {"and_a_file", {"image ruby|image|ruby:3", "image ruby|argv|ruby {code}"}, "code_file"},
    {"and_is_good_then",
     {"image ruby|image|ruby:3", "image ruby|argv|ruby {code}", "image ruby|code_file|main.rb"},
     NULL},
    {"output_needs_its_file",
     {"image ruby|image|ruby:3", "image ruby|argv|{output}", "image ruby|code_file|main.rb"},
     "output_file"},
    {"image_with_a_blank_in_it", {"image python|image|python?x"}, "allowed"},
    {"file_in_a_folder", {PY, "image python|code_file|a/b"}, "allowed"},
    {"user_root", {"docker|user|0:0"}, "not root"},
    {"user_root_by_default_group", {"docker|user|0"}, "not root"},
    {"user_by_name", {"docker|user|root"}, "allowed"},
    {"layer", {"docker|require|seccomp pidns", "docker|+require|netns"}, NULL},
    {"no_layer", {"docker|require|seccomp walls"}, "not a layer"},
};

static int read_line(struct al_docker_config *config, const char *line, struct al_err *err)
{
    char section[64], key[64];
    size_t n = strcspn(line, "|");
    size_t m = strcspn(line + n + 1, "|");
    snprintf(section, sizeof section, "%.*s", (int)n, line);
    bool continues = line[n + 1] == '+';
    snprintf(key, sizeof key, "%.*s", (int)m - continues, line + n + 1 + continues);
    assert_true(al_docker_config_has(section));
    int rc = al_docker_config_open(config, section, err);
    return rc < 0 ? rc
                  : al_docker_config_set(config, section, key, continues, line + n + m + 2, err);
}

static void test_row(void **state)
{
    const struct row *row = *state;
    static struct al_docker_config config;
    struct al_err err = {0};
    int rc = 0;
    al_docker_config_defaults(&config);
    for (size_t i = 0; row->lines[i] && rc == 0; i++) {
        rc = read_line(&config, row->lines[i], &err);
    }
    rc = rc < 0 ? rc : al_docker_config_check(&config, &err);
    if (!row->error) {
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
    } else if (rc == 0 || !strstr(err.text, row->error)) {
        fail_msg("says '%s' and should say '%s'", err.text, row->error);
    } else {
        assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
    }
}

static void test_values__as_they_are_used(void **state)
{
    (void)state;
    static struct al_docker_config config;
    struct al_err err = {0};
    static const char *const lines[] = {
        PY,
        "image typescript|image|node:22",
        "image typescript|compile|tsc  {code}",
        "image typescript|+compile|--out\t{output}",
        "docker|require|seccomp",
        "docker|+require|netns",
    };
    al_docker_config_defaults(&config);
    assert_int_equal(config.require & (AL_LAYER_USERNS | AL_LAYER_OWN_UID), 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(read_line(&config, lines[i], &err), 0);
    }
    assert_int_equal(config.n_images, 2);
    assert_string_equal(config.images[0].argv, "python3 {code}");
    assert_string_equal(config.images[0].code_file, "main.py");
    assert_string_equal(config.images[1].compile, "tsc {code} --out {output}");
    assert_int_equal(config.require, AL_LAYER_SECCOMP | AL_LAYER_NETNS);
    assert_false(al_docker_config_has("dockers"));
    assert_false(al_docker_config_has("runtime x"));
}

static void test_images__have_a_bound(void **state)
{
    (void)state;
    static struct al_docker_config config;
    struct al_err err = {0};
    al_docker_config_defaults(&config);
    for (int i = 0; i < AL_DOCKER_IMAGES_MAX; i++) {
        char section[32];
        snprintf(section, sizeof section, "image r%d", i);
        assert_int_equal(al_docker_config_open(&config, section, &err), 0);
    }
    assert_true(al_docker_config_open(&config, "image more", &err) < 0);
    assert_int_equal(al_docker_config_open(&config, "image r3", &(struct al_err){0}), 0);
}

#define N_ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    struct CMUnitTest tests[N_ROWS + 2] = {
        cmocka_unit_test(test_values__as_they_are_used),
        cmocka_unit_test(test_images__have_a_bound),
    };
    for (size_t i = 0; i < N_ROWS; i++) {
        tests[2 + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
