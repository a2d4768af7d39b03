/*
 * Attacks that need more than one process of a cell: a compile step, which in some languages runs
 * what the request says (a preloaded library is enough), prepares what the launcher's code will
 * stumble over when it starts the program in the same cell. And: that the product knows nothing of
 * barriers to be switched off.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "tests/escape/prison.h"
#include "tests/escape/weakened.h"

#define PRODUCT  "backends/launcher/airlock-launcher"
#define WEAKENED "backends/launcher/airlock-launcher-weakened"
#define FDS_MAX  24 /* what a launcher's child may have open, and more */

static const struct prison_plan product;
static struct world world;

static int open_world(void **state)
{
    (void)state;
    world_open(&world);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    world_close(&world);
    return 0;
}

/* --- the workdir as a link to an fd of the launcher's child --- */

/* Runs a job whose compile step has put the link there; whether its program could read the host's
 * file. */
static bool climbs(const struct prison *p, int fd, struct words *ret)
{
    char code[256];
    snprintf(code, sizeof code,
             "cp attack /tmp/attack; mv /sandbox/w /sandbox/was; "
             "ln -s /proc/self/fd/%d /sandbox/w",
             fd);
    const struct inmate inmate = {.language = "planted", .code = code, .workdir = "/sandbox/w"};
    prison_run(p, &inmate, ret);
    return strstr(ret->out, "climb_from_cwd ok") != NULL;
}

static void test_workdir_is_a_link_to_an_fd__refused(void **state)
{
    (void)state;
    struct prison p;
    struct words words;
    prison_open(&p, &world, &product);
    for (int fd = 3; fd < FDS_MAX; fd++) {
        assert_false(climbs(&p, fd, &words));
        assert_false(words.exit.ran);
        assert_non_null(strstr(words.exit.error, "workdir"));
    }
    prison_close(&p);
}

/* The same attack gets out when links are followed. */
static void test_workdir_is_a_link_to_an_fd__gets_out_without_the_barrier(void **state)
{
    (void)state;
    struct prison p;
    struct words words;
    bool out = false;
    prison_open(&p, &world, &(struct prison_plan){.weakened = true, .off = OFF(WORKDIR)});
    for (int fd = 3; fd < FDS_MAX && !out; fd++) {
        out = climbs(&p, fd, &words);
    }
    assert_true(out);
    prison_close(&p);
}

/* A link to elsewhere in the sandbox is one too: what the program's folder is says the request. */
static void test_workdir_is_a_link_in_the_sandbox__refused(void **state)
{
    (void)state;
    struct prison p;
    struct words words;
    const struct inmate inmate = {.language = "planted",
                                  .code = "cp attack /tmp/attack; mv /sandbox/w /sandbox/was; "
                                          "ln -s /tmp /sandbox/w",
                                  .workdir = "/sandbox/w"};
    prison_open(&p, &world, &product);
    prison_run(&p, &inmate, &words);
    assert_false(words.exit.ran);
    prison_close(&p);
}

/* --- what the compile step has left running --- */

#define WATCHES 30

/* What a process of the compile step can make of the one that becomes the program. It may miss it:
 * so it is asked until it says `enough`. Whether it did. */
static bool watch_second_stage(const struct prison_plan *plan, const char *enough,
                               const char *never)
{
    static const struct inmate inmate = {
        .language = "watched",
        .code = "echo 'until [ -s /tmp/said ]; do sleep 0.02; done; cat /tmp/said' >main.out\n"
                "(./attack second_stage >/tmp/saying; mv /tmp/saying /tmp/said) &\n"
                "sleep 0.01"};
    struct prison p;
    struct words words;
    bool said = false;
    prison_open(&p, &world, plan);
    for (int i = 0; i < WATCHES && !said; i++) {
        prison_run(&p, &inmate, &words);
        said = strcmp(words.out, enough) == 0;
        assert_string_not_equal(words.out, never);
    }
    prison_close(&p);
    return said;
}

static void test_second_stage__cannot_be_looked_into(void **state)
{
    (void)state;
    assert_true(watch_second_stage(&product, "second_stage EACCES\n", "second_stage ok\n"));
}

static void test_second_stage__can_be_when_dumpable(void **state)
{
    (void)state;
    static const struct prison_plan plan = {.weakened = true, .off = OFF(DUMPABLE)};
    assert_true(watch_second_stage(&plan, "second_stage ok\n", ""));
}

/* --- the environment --- */

/* The library would tell if anything but the job's own programs loaded it. */
static void test_preload__stays_in_the_cell(void **state)
{
    (void)state;
    struct prison p;
    struct words words;
    const struct inmate inmate = {
        .language = "bash", .code = "echo mine", .preload = "/sandbox/preload.so"};
    prison_open(&p, &world, &product);
    prison_run(&p, &inmate, &words);
    assert_string_equal(words.out, "preloaded bash\nmine\n");
    prison_close(&p);
}

/* --- the launcher's own binary --- */

/* An output whose interpreter is /proc/self/exe makes the launcher's child execute the launcher.
 * The product's is linked statically, so that nothing can be preloaded into it; the weakened one,
 * which leaves nothing out here, is not. */
static void overwrite_launcher(const char *launcher, const char *want)
{
    struct prison p;
    struct words words;
    const struct inmate inmate = {.language = "binary",
                                  .code = "echo '#!/proc/self/exe' >main.out; chmod +x main.out",
                                  .preload = "/sandbox/preload.so"};
    prison_open(&p, &world, &(struct prison_plan){.launcher = launcher, .weakened = true});
    prison_run(&p, &inmate, &words);
    assert_string_equal(words.out, want);
    prison_close(&p);
}

static void test_launcher_binary__cannot_be_written(void **state)
{
    (void)state;
    overwrite_launcher(NULL, "launcher_exe EACCES\n");
}

/* With a binary that anybody may write it comes as far as the kernel's own "is running". */
static void test_launcher_binary__only_its_mode_protects_it(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/launcher", world.dir);
    al_auto_close int in = open(WEAKENED, O_RDONLY | O_CLOEXEC);
    int out = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0777);
    struct stat st;
    assert_true(in >= 0 && out >= 0 && fstat(in, &st) == 0);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    assert_int_equal(al_io_write_full(out, data, (size_t)st.st_size), 0);
    assert_int_equal(fchmod(out, 0777), 0);
    close(out);
    munmap(data, (size_t)st.st_size);
    overwrite_launcher(path, "launcher_exe ETXTBSY\n");
}

/* --- the product has no switches --- */

static bool binary_holds(const char *path, const char *text)
{
    struct stat st;
    al_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(data, MAP_FAILED);
    bool holds = memmem(data, (size_t)st.st_size, text, strlen(text)) != NULL;
    munmap(data, (size_t)st.st_size);
    return holds;
}

/* Neither who answers nor the variable that he reads; symbols are not stripped here. */
static void test_product__knows_no_barriers(void **state)
{
    (void)state;
    static const char *const texts[] = {"al_escape_suite_keeps", AL_BARRIERS_OFF_ENV};
    for (size_t i = 0; i < 2; i++) {
        assert_true(binary_holds(WEAKENED, texts[i]));
        assert_false(binary_holds(PRODUCT, texts[i]));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workdir_is_a_link_to_an_fd__refused),
        cmocka_unit_test(test_workdir_is_a_link_to_an_fd__gets_out_without_the_barrier),
        cmocka_unit_test(test_workdir_is_a_link_in_the_sandbox__refused),
        cmocka_unit_test(test_second_stage__cannot_be_looked_into),
        cmocka_unit_test(test_second_stage__can_be_when_dumpable),
        cmocka_unit_test(test_preload__stays_in_the_cell),
        cmocka_unit_test(test_launcher_binary__cannot_be_written),
        cmocka_unit_test(test_launcher_binary__only_its_mode_protects_it),
        cmocka_unit_test(test_product__knows_no_barriers),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    return cmocka_run_group_tests_name("stages", tests, open_world, close_world);
}
