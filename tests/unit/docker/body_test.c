/* What the daemon is told, and what is read of what it says. */
#include "backends/docker/body.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

/* The value at "a.b.c" as JSON; "null" when there is none. */
static void get(const json_t *json, const char *path, char *ret, size_t size)
{
    char part[64];
    while (*path) {
        size_t n = strcspn(path, ".");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        json = json_object_get(json, part);
        path += n + (path[n] == '.');
    }
    char *text = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT) : strdup("null");
    snprintf(ret, size, "%s", text);
    free(text);
}

/* Everything that keeps a program in its container. */
static void test_create__says_every_limit(void **state)
{
    (void)state;
    const struct al_quotas quotas = {.memory_mb = 100, .pids = 7, .disk_mb = 8};
    const struct al_docker_create create = {.image = "airlock-x:y",
                                            .user = "65534:1000",
                                            .instance = "0123",
                                            .job_id = "abcd",
                                            .oci_runtime = "",
                                            .entrypoint = "/init",
                                            .quotas = &quotas};
    static const char *const rows[][2] = {
        {"Image", "\"airlock-x:y\""},
        {"Entrypoint", "[\"/init\"]"},
        {"Cmd", "[]"},
        {"User", "\"65534:1000\""},
        {"Hostname", "\"sandbox\""},
        {"Tty", "false"},
        {"OpenStdin", "true"},
        {"StdinOnce", "true"},
        {"AttachStdin", "true"},
        {"AttachStdout", "true"},
        {"AttachStderr", "true"},
        {"NetworkDisabled", "true"},
        {"Labels", "{\"airlock.instance\":\"0123\",\"airlock.job\":\"abcd\"}"},
        {"HostConfig.Memory", "104857600"},
        {"HostConfig.MemorySwap", "104857600"},
        {"HostConfig.PidsLimit", "8"}, /* init too */
        {"HostConfig.ShmSize", "8388608"},
        {"HostConfig.ReadonlyRootfs", "true"},
        {"HostConfig.Init", "false"},
        {"HostConfig.NetworkMode", "\"none\""},
        {"HostConfig.IpcMode", "\"private\""},
        {"HostConfig.CgroupnsMode", "\"private\""},
        {"HostConfig.CapDrop", "[\"ALL\"]"},
        {"HostConfig.SecurityOpt", "[\"no-new-privileges\"]"},
        {"HostConfig.LogConfig", "{\"Type\":\"none\"}"},
        {"HostConfig.Tmpfs",
         "{\"/"
         "sandbox\":\"rw,exec,nosuid,nodev,size=8m,nr_inodes=6144,mode=0755,uid=65534,gid=1000\","
         "\"/tmp\":\"rw,exec,nosuid,nodev,size=8m,nr_inodes=6144,mode=1777,uid=65534,gid=1000\"}"},
        {"HostConfig.Runtime", "null"},
        {"HostConfig.Binds", "null"},
        {"HostConfig.Privileged", "null"},
    };
    char *text = al_docker_body_create(&create);
    assert_non_null(text);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char value[512];
        get(json, rows[i][0], value, sizeof value);
        if (strcmp(value, rows[i][1]) != 0) {
            fail_msg("%s is %s and should be %s", rows[i][0], value, rows[i][1]);
        }
    }
    json_decref(json);
    free(text);
}

static void test_create__with_another_runtime(void **state)
{
    (void)state;
    const struct al_quotas quotas = {.memory_mb = 100};
    const struct al_docker_create create = {.image = "i",
                                            .user = "1",
                                            .instance = "0",
                                            .job_id = "a",
                                            .oci_runtime = "runsc",
                                            .entrypoint = "/init",
                                            .quotas = &quotas};
    char *text = al_docker_body_create(&create);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"Runtime\":\"runsc\""));
    assert_non_null(strstr(text, "uid=1,gid=1"));
    free(text);
}

static void test_update__is_memory_and_swap(void **state)
{
    (void)state;
    char *text = al_docker_body_update(3);
    assert_string_equal(text, "{\"Memory\":3145728,\"MemorySwap\":3145728}");
    free(text);
}

static void test_filter__is_percent_encoded(void **state)
{
    (void)state;
    char *text = al_docker_filter_instance("00ff");
    assert_string_equal(text, "%7B%22label%22%3A%5B%22airlock.instance%3D00ff%22%5D%7D");
    free(text);
}

struct version_row {
    const char *json;
    unsigned version; /* 0: none in common */
};

static void test_version__is_the_best_in_common(void **state)
{
    (void)state;
    static const struct version_row rows[] = {
        {"{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\"}", 41},
        {"{\"ApiVersion\":\"1.44\",\"MinAPIVersion\":\"1.24\"}", 44},
        {"{\"ApiVersion\":\"1.56\",\"MinAPIVersion\":\"1.40\"}", 44},
        {"{\"ApiVersion\":\"1.53\",\"MinAPIVersion\":\"1.44\"}", 44},
        {"{\"ApiVersion\":\"1.60\",\"MinAPIVersion\":\"1.50\"}", 50},
        {"{\"ApiVersion\":\"1.41\"}", 41},
        {"{\"ApiVersion\":\"1.40\",\"MinAPIVersion\":\"1.12\"}", 0},
        {"{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.42\"}", 0},
        {"{\"ApiVersion\":\"2.0\"}", 0},
        {"{\"ApiVersion\":41}", 0},
        {"{}", 0},
        {"[]", 0},
        {"not json", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned version = 0;
        struct al_err err = {0};
        int rc = al_docker_read_version(rows[i].json, strlen(rows[i].json), &version, &err);
        if (version != rows[i].version || (rc == 0) != (rows[i].version > 0)) {
            fail_msg("%s gives %u", rows[i].json, version);
        }
        assert_int_equal(al_err_is_set(&err), rc != 0);
    }
}

static void test_message__of_whatever_comes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"message\":\"No such image: x:1\"}\n", "No such image: x:1"},
        {"{\"message\":\"two\\nlines\"}", "two"},
        {"404 page not found\n", "404 page not found"},
        {"{\"message\":7}", "{\"message\":7}"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        al_docker_read_message(rows[i][0], strlen(rows[i][0]), text, sizeof text);
        assert_string_equal(text, rows[i][1]);
    }
    char small[8];
    al_docker_read_message("{\"message\":\"1234567890\"}", 24, small, sizeof small);
    assert_string_equal(small, "1234567");
}

static void test_state__tells_an_oom_kill(void **state)
{
    (void)state;
    static const char json[] =
        "{\"State\":{\"Running\":false,\"OOMKilled\":true,\"ExitCode\":137,\"Error\":\"e\"}}";
    struct al_docker_state s;
    assert_int_equal(al_docker_read_state(json, sizeof json - 1, &s), 0);
    assert_true(s.oom_killed && !s.running);
    assert_int_equal(s.exit_code, 137);
    assert_string_equal(s.error, "e");
    assert_int_equal(al_docker_read_state("{}", 2, &s), -EBADMSG);
    assert_int_equal(al_docker_read_state("{\"State\":3}", 11, &s), -EBADMSG);
}

#define IDS_BYTES 32

static int add_id(void *arg, const char *id)
{
    char *ids = arg;
    size_t len = strlen(ids);
    snprintf(ids + len, IDS_BYTES - len, "%s", id);
    return strcmp(id, "stop") == 0 ? -EIO : 0;
}

static void test_ids__one_after_the_other(void **state)
{
    (void)state;
    static const char json[] = "[{\"Id\":\"a\"},{},{\"Id\":7},{\"Id\":\"b\"}]";
    static const char stops[] = "[{\"Id\":\"stop\"},{\"Id\":\"b\"}]";
    char ids[IDS_BYTES] = "";
    assert_int_equal(al_docker_read_ids(json, sizeof json - 1, add_id, ids), 0);
    assert_string_equal(ids, "ab");
    ids[0] = '\0';
    assert_int_equal(al_docker_read_ids(stops, sizeof stops - 1, add_id, ids), -EIO);
    assert_string_equal(ids, "stop");
    assert_int_equal(al_docker_read_ids("{}", 2, add_id, ids), -EBADMSG);
}

static void test_tags__of_every_image(void **state)
{
    (void)state;
    static const char json[] =
        "[{\"RepoTags\":[\"a:1\",\"b:2\"]},{\"RepoTags\":null},{},{\"RepoTags\":[7,\"c:3\"]}]";
    char tags[32] = "";
    assert_int_equal(al_docker_read_tags(json, sizeof json - 1, add_id, tags), 0);
    assert_string_equal(tags, "a:1b:2c:3");
    assert_int_equal(al_docker_read_tags("7", 1, add_id, tags), -EBADMSG);
}

static void test_build__its_error_comes_with_a_200(void **state)
{
    (void)state;
    static const char good[] = "{\"stream\":\"Step 1/2\"}\r\n{\"stream\":\"sha256:0\"}\r\n";
    static const char bad[] =
        "{\"stream\":\"Step 1/2\"}\r\n"
        "{\"errorDetail\":{\"message\":\"no space\"},\"error\":\"no space\"}\r\n";
    struct al_err err = {0};
    assert_int_equal(al_docker_read_build(good, sizeof good - 1, &err), 0);
    assert_int_equal(al_docker_read_build("", 0, &err), 0);
    assert_true(al_docker_read_build(bad, sizeof bad - 1, &err) < 0);
    assert_string_equal(err.text, "no space");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create__says_every_limit),
        cmocka_unit_test(test_create__with_another_runtime),
        cmocka_unit_test(test_update__is_memory_and_swap),
        cmocka_unit_test(test_filter__is_percent_encoded),
        cmocka_unit_test(test_version__is_the_best_in_common),
        cmocka_unit_test(test_message__of_whatever_comes),
        cmocka_unit_test(test_state__tells_an_oom_kill),
        cmocka_unit_test(test_ids__one_after_the_other),
        cmocka_unit_test(test_tags__of_every_image),
        cmocka_unit_test(test_build__its_error_comes_with_a_200),
    };
    return cmocka_run_group_tests_name("body", tests, NULL, NULL);
}
