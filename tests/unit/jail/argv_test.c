/* The tools' command lines: what a spec becomes, word by word. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/jail/argv.h"

static const char *const none[] = {NULL};

static struct al_jail_spec usual(void)
{
    return (struct al_jail_spec){.program = "/usr/bin/bwrap",
                                 .warden = "/.airlock/launcher",
                                 .link_fd = 3,
                                 .cpu_fd = 5,
                                 .filter_fd = 4,
                                 .uid = 1000,
                                 .hidden = none,
                                 .read_only = none};
}

static const char *joined(const struct al_jail_argv *argv)
{
    static char text[4096];
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < argv->n; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s", i ? " " : "", argv->word[i]);
    }
    assert_true(len < sizeof text);
    assert_null(argv->word[argv->n]);
    return text;
}

#define BUBBLEWRAP_NAMESPACES \
    " --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-net --unshare-cgroup"
#define BUBBLEWRAP_PROCESS \
    " --die-with-parent --new-session --as-pid-1 --cap-drop ALL --hostname sandbox"
#define BUBBLEWRAP_MOUNTS                                                                          \
    " --ro-bind / / --dev /dev --dev-bind /dev/pts /dev/pts --bind /dev/shm /dev/shm --proc /proc" \
    " --bind /sandbox /sandbox --bind /tmp /tmp"

static void test_bubblewrap__usual(void **state)
{
    (void)state;
    struct al_jail_spec spec = usual();
    struct al_jail_argv argv;
    assert_int_equal(al_jail_bubblewrap_argv(&spec, &argv), 0);
    assert_string_equal(joined(&argv), "/usr/bin/bwrap" BUBBLEWRAP_NAMESPACES
                                       " --uid 1000 --gid 1000" BUBBLEWRAP_PROCESS BUBBLEWRAP_MOUNTS
                                       " --chdir / --seccomp 4 -- /.airlock/launcher --warden 3 5");
}

/* Each field shows where it belongs, and nowhere else. */
static void test_bubblewrap__every_field(void **state)
{
    (void)state;
    static const char *const hidden[] = {"/proc/kcore", "/proc/keys", NULL};
    static const char *const read_only[] = {"/proc/sys", NULL};
    const struct al_jail_spec spec = {.program = "/opt/b w",
                                      .warden = "/w",
                                      .link_fd = 2147483647,
                                      .cpu_fd = 9,
                                      .filter_fd = 17,
                                      .uid = 4294967295,
                                      .hidden = hidden,
                                      .read_only = read_only};
    struct al_jail_argv argv;
    assert_int_equal(al_jail_bubblewrap_argv(&spec, &argv), 0);
    assert_string_equal(argv.word[0], "/opt/b w");
    assert_string_equal(joined(&argv),
                        "/opt/b w" BUBBLEWRAP_NAMESPACES
                        " --uid 4294967295 --gid 4294967295" BUBBLEWRAP_PROCESS BUBBLEWRAP_MOUNTS
                        " --dev-bind /dev/null /proc/kcore --dev-bind /dev/null /proc/keys"
                        " --ro-bind /proc/sys /proc/sys"
                        " --chdir / --seccomp 17 -- /w --warden 2147483647 9");
}

#define FIREJAIL_OPTIONS                                                                 \
    " --quiet --noprofile --deterministic-exit-code --deterministic-shutdown --net=none" \
    " --ipc-namespace --hostname=sandbox --nogroups --caps.drop=all --nonewprivs"        \
    " --allusers --keep-var-tmp --writable-etc --keep-config-pulse"

static void test_firejail__usual(void **state)
{
    (void)state;
    struct al_jail_spec spec = usual();
    struct al_jail_argv argv;
    spec.program = "/.airlock/firejail";
    assert_int_equal(al_jail_firejail_argv(&spec, &argv), 0);
    assert_string_equal(joined(&argv), "/.airlock/firejail" FIREJAIL_OPTIONS
                                       " --keep-fd=3,5 /.airlock/launcher --warden 3 5");
}

/* Neither the filter nor the user is its to take. */
static void test_firejail__every_field(void **state)
{
    (void)state;
    static const char *const hidden[] = {"/proc/kcore", "/proc/keys", NULL};
    static const char *const read_only[] = {"/proc/fs", NULL};
    const struct al_jail_spec spec = {.program = "/opt/f j",
                                      .warden = "/w",
                                      .link_fd = 2147483647,
                                      .cpu_fd = 9,
                                      .filter_fd = 17,
                                      .uid = 4294967295,
                                      .hidden = hidden,
                                      .read_only = read_only};
    struct al_jail_argv argv;
    assert_int_equal(al_jail_firejail_argv(&spec, &argv), 0);
    assert_string_equal(argv.word[0], "/opt/f j");
    assert_string_equal(joined(&argv), "/opt/f j" FIREJAIL_OPTIONS
                                       " --keep-fd=2147483647,9 --blacklist=/proc/kcore"
                                       " --blacklist=/proc/keys --read-only=/proc/fs"
                                       " /w --warden 2147483647 9");
}

/* By words as by the text that is made for them. */
static void test_too_much__refused(void **state)
{
    (void)state;
    static int (*const builders[])(const struct al_jail_spec *, struct al_jail_argv *) = {
        al_jail_bubblewrap_argv, al_jail_firejail_argv};
    for (size_t b = 0; b < sizeof builders / sizeof builders[0]; b++) {
        const char *many[AL_JAIL_ARGV_MAX + 2];
        struct al_jail_argv argv;
        struct al_jail_spec spec = usual();
        size_t fits = 0;
        spec.hidden = many;
        for (size_t n = 0; n <= AL_JAIL_ARGV_MAX; n++) {
            many[n] = NULL;
            int rc = builders[b](&spec, &argv);
            assert_true(rc == 0 || rc == -E2BIG);
            if (rc == 0) {
                assert_int_equal(fits, n); /* once it is too many, it stays so */
                assert_true(argv.n <= AL_JAIL_ARGV_MAX);
                assert_null(argv.word[argv.n]);
                fits++;
            }
            many[n] = "/proc/a_file_like_any_other";
        }
        assert_in_range(fits, 17, AL_JAIL_ARGV_MAX); /* all that the launcher masks */
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bubblewrap__usual), cmocka_unit_test(test_bubblewrap__every_field),
        cmocka_unit_test(test_firejail__usual),   cmocka_unit_test(test_firejail__every_field),
        cmocka_unit_test(test_too_much__refused),
    };
    return cmocka_run_group_tests_name("argv", tests, NULL, NULL);
}
