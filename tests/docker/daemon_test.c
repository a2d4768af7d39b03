/*
 * What is between the backend and its daemon: what is left behind when either dies, what is not
 * there, what containers are really like. Each test leaves a working daemon but the last ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "backends/docker/docker.h"
#include "tests/support/runner.h"

#define PATIENCE_MS 30000 /* for what takes a moment, on a busy machine */
#define WORKERS     4
#define RUNS_EACH   25
#define INIT_PATH   "backends/docker/init/airlock-container-init"
#define NAP_SECONDS "8642"

static char data_dir[] = "/tmp/airlock-docker-XXXXXX";
static struct al_docker_config config;

/* --- fixtures --- */

static void add_image(const char *language, const char *image)
{
    struct al_err err = {0};
    char section[64];
    snprintf(section, sizeof section, "image %s", language);
    if (al_docker_config_open(&config, section, &err) < 0 ||
        al_docker_config_set(&config, section, "image", false, image, &err) < 0)
    {
        fail_msg("%s", err.text);
    }
}

static void configure(const char *host)
{
    al_docker_config_defaults(&config);
    snprintf(config.host, sizeof config.host, "%s", host);
    add_image("bash", getenv("AIRLOCK_TEST_DOCKER_IMAGE"));
}

static struct al_backend *create(void)
{
    const char *init = getenv("AIRLOCK_CONTAINER_INIT");
    struct al_backend *backend = al_docker_create(&config, data_dir, init ? init : INIT_PATH);
    assert_non_null(backend);
    return backend;
}

static struct al_backend *create_available(void)
{
    configure(getenv("AIRLOCK_TEST_DOCKER"));
    struct al_backend *backend = create();
    if (!backend->available) {
        fail_msg("unavailable: %s", backend->unavailable_reason);
    }
    return backend;
}

/* What a shell command prints, without its last newline. */
static const char *shell(const char *format, ...)
{
    static char text[4096];
    char command[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    pclose(f);
    text[n > 0 && text[n - 1] == '\n' ? n - 1 : n] = '\0';
    return text;
}

static const char *containers(void)
{
    return shell("docker ps -aq --filter label=airlock.instance | tr '\\n' ' '");
}

static bool naps(void)
{
    return al_test_count_processes(NAP_SECONDS) > 0;
}

/* Until `naps` says so. */
static bool wait_for_naps(bool wanted)
{
    int64_t until_ms = al_now_ms() + PATIENCE_MS;
    while (naps() != wanted) {
        if (al_now_ms() > until_ms) {
            return false;
        }
        usleep(20000);
    }
    return true;
}

static struct al_job_spec nap_spec(const struct al_backend *backend)
{
    struct al_job_spec spec = al_test_spec(backend, "bash", "echo ready; sleep " NAP_SECONDS);
    spec.quotas.wall_ms = 120000;
    return spec;
}

static int make_data_dir(void **state)
{
    (void)state;
    return mkdtemp(data_dir) ? 0 : -1;
}

static int remove_data_dir(void **state)
{
    (void)state;
    shell("rm -rf %s", data_dir);
    return 0;
}

/* --- what is not there --- */

static void assert_unavailable(const char *reason)
{
    struct al_backend *backend = create();
    assert_false(backend->available);
    if (!strstr(backend->unavailable_reason, reason)) {
        fail_msg("says '%s' and should say '%s'", backend->unavailable_reason, reason);
    }
    al_backend_destroy(backend);
}

static void test_not_configured__is_off(void **state)
{
    (void)state;
    configure("");
    assert_unavailable("[docker] host is not configured");
}

static void test_no_daemon__says_so(void **state)
{
    (void)state;
    configure("unix:///nonexistent/docker.sock");
    assert_unavailable(
        "docker daemon at unix:///nonexistent/docker.sock: No such file or directory");
}

static void test_no_image__leaves_the_other_languages(void **state)
{
    (void)state;
    configure(getenv("AIRLOCK_TEST_DOCKER"));
    add_image("python", "airlock-nonexistent:7");
    struct al_backend *backend = create();
    assert_true(backend->available);
    const struct al_language *bash = al_backend_find_language(backend, "bash");
    const struct al_language *python = al_backend_find_language(backend, "py");
    assert_null(bash->unavailable);
    assert_int_equal(strncmp(bash->version, "5.", 2), 0);
    assert_non_null(python);
    assert_non_null(strstr(python->unavailable, "no image airlock-nonexistent:7"));
    al_backend_destroy(backend);
}

static void test_no_program__leaves_the_language_out(void **state)
{
    (void)state;
    struct al_err err = {0};
    configure(getenv("AIRLOCK_TEST_DOCKER"));
    add_image("javascript", getenv("AIRLOCK_TEST_DOCKER_IMAGE"));
    assert_int_equal(al_docker_config_set(&config, "image javascript", "argv", false,
                                          "/opt/deno run {code}", &err),
                     0);
    struct al_backend *backend = create();
    const struct al_language *language = al_backend_find_language(backend, "javascript");
    assert_non_null(language->unavailable);
    assert_non_null(strstr(language->unavailable, "cannot execute /opt/deno"));
    al_backend_destroy(backend);
}

static void test_required_layer_that_docker_has_not(void **state)
{
    (void)state;
    configure(getenv("AIRLOCK_TEST_DOCKER"));
    config.require = AL_LAYER_OWN_UID;
    assert_unavailable("lacks the layer own_uid");
}

/* The image behind a name has changed, and what was made of the one before is not left. */
static void test_another_image__takes_the_place_of_the_one_before(void **state)
{
    (void)state;
    const char *image = getenv("AIRLOCK_TEST_DOCKER_IMAGE");
    configure(getenv("AIRLOCK_TEST_DOCKER"));
    add_image("python", "airlock-renamed:1");
    shell("docker tag %s airlock-renamed:1", image);
    al_backend_destroy(create());
    assert_string_equal(shell("docker images -q --filter label=airlock.instance | wc -l"), "1");
    shell("docker create --name changed %s bash; docker commit changed airlock-renamed:1; "
          "docker rm changed",
          image);
    al_backend_destroy(create());
    assert_string_equal(shell("docker images -q --filter label=airlock.instance | wc -l"), "2");
    configure(getenv("AIRLOCK_TEST_DOCKER"));
    al_backend_destroy(create());
    assert_string_equal(shell("docker images -q --filter label=airlock.instance | wc -l"), "1");
    shell("docker rmi airlock-renamed:1");
}

/* --- what containers are like --- */

static void assert_prints(struct al_backend *backend, const char *code, const char *expected)
{
    struct al_job_spec spec = al_test_spec(backend, "bash", code);
    struct al_test_run run;
    al_test_run(backend, &spec, NULL, &run);
    if (run.rc != 0) {
        fail_msg("%s", run.err.text);
    }
    assert_string_equal((const char *)run.out[AL_STDOUT].data, expected);
    al_test_run_finish(&run);
}

static void test_init__survives_its_program(void **state)
{
    (void)state;
    struct al_backend *backend = create_available();
    assert_prints(backend,
                  "for s in $(seq 1 31); do kill -$s 1 2>/dev/null; done; sleep 0.2; echo alive\n"
                  "cat /proc/1/fd/1 /proc/1/mem /proc/1/environ 2>/dev/null | head -c 1\n"
                  "ls /proc/1/fd 2>/dev/null; echo end",
                  "alive\nend\n");
    al_backend_destroy(backend);
}

static void test_layers__are_those_that_hold(void **state)
{
    (void)state;
    struct al_backend *backend = create_available();
    const uint32_t all = AL_LAYERS_ALL & ~(uint32_t)(AL_LAYER_USERNS | AL_LAYER_OWN_UID);
    assert_int_equal(backend->isolation, all);
    assert_prints(backend, "id -u; wc -l < /proc/net/dev; grep -c Seccomp: /proc/self/status",
                  "65534\n3\n1\n");
    al_backend_destroy(backend);
}

/* --- over TLS --- */

static void configure_tls(const char *cert, const char *key)
{
    const char *folder = getenv("AIRLOCK_TEST_DOCKER_TLS");
    configure(getenv("AIRLOCK_TEST_DOCKER_TCP"));
    snprintf(config.tls_ca, sizeof config.tls_ca, "%s/ca.pem", folder);
    snprintf(config.tls_cert, sizeof config.tls_cert, "%s/%s", folder, cert);
    snprintf(config.tls_key, sizeof config.tls_key, "%s/%s", folder, key);
}

static void test_tls__carries_output_and_input(void **state)
{
    (void)state;
    static uint8_t zeros[1 << 20];
    configure_tls("cert.pem", "key.pem");
    struct al_backend *backend = create();
    if (!backend->available) {
        fail_msg("unavailable: %s", backend->unavailable_reason);
    }
    struct al_job_spec spec = al_test_spec(backend, "bash", "cat");
    struct al_test_run run;
    spec.stdin_bytes = (struct al_bytes){zeros, sizeof zeros};
    al_test_run(backend, &spec, NULL, &run);
    assert_int_equal(run.rc, 0);
    assert_int_equal(run.result.status, AL_STATUS_SUCCEEDED);
    assert_int_equal(run.out[AL_STDOUT].len, sizeof zeros);
    al_test_run_finish(&run);
    al_backend_destroy(backend);
}

static void test_tls__a_daemon_that_another_authority_signed_is_not_believed(void **state)
{
    (void)state;
    configure_tls("cert.pem", "key.pem");
    snprintf(config.tls_ca, sizeof config.tls_ca, "%s/cert.pem", getenv("AIRLOCK_TEST_DOCKER_TLS"));
    assert_unavailable(": SSL");
}

static void test_tls__a_certificate_that_is_not_there(void **state)
{
    (void)state;
    configure_tls("nonexistent.pem", "key.pem");
    assert_unavailable("nonexistent.pem");
}

/* --- nothing is left --- */

struct worker {
    struct al_backend *backend;
    int number, wrong;
    char why[800];
};

static void *work(void *arg)
{
    struct worker *w = arg;
    for (int i = 0; i < RUNS_EACH; i++) {
        char code[64], expected[64];
        struct al_test_run run;
        snprintf(code, sizeof code, "echo %d-%d; exit %d", w->number, i, 1 + i);
        snprintf(expected, sizeof expected, "%d-%d\n", w->number, i);
        struct al_job_spec spec = al_test_spec(w->backend, "bash", code);
        al_test_run(w->backend, &spec, NULL, &run);
        if (run.rc != 0 || run.result.exit_value != 1 + i ||
            strcmp((const char *)run.out[AL_STDOUT].data, expected) != 0)
        {
            w->wrong++;
            snprintf(w->why, sizeof w->why, "%s %s", run.err.text, run.result.error);
        }
        al_test_run_finish(&run);
    }
    return NULL;
}

static void test_many_at_once__each_its_own(void **state)
{
    (void)state;
    struct al_backend *backend = create_available();
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.backend = backend, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].wrong > 0) {
            fail_msg("worker %d: %d wrong, the last: %s", i, workers[i].wrong, workers[i].why);
        }
    }
    assert_string_equal(containers(), "");
    al_backend_destroy(backend);
}

static pid_t start_airlockd(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct al_test_run run;
        struct al_backend *backend = create_available();
        struct al_job_spec spec = nap_spec(backend);
        al_test_run(backend, &spec, NULL, &run);
        _exit(0);
    }
    return pid;
}

/* Long before the wall limit: init sees the end of its standard input. What is left of the
 * container goes at the next start of the instance, and of nobody else's. */
static void test_airlockd_killed__nothing_runs_and_the_next_start_reaps(void **state)
{
    (void)state;
    pid_t pid = start_airlockd();
    assert_true(pid > 0);
    assert_true(wait_for_naps(true));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(wait_for_naps(false));
    assert_string_not_equal(containers(), "");
    shell("docker create --name other --label airlock.instance=other %s bash",
          getenv("AIRLOCK_TEST_DOCKER_IMAGE"));
    struct al_backend *backend = create_available();
    assert_string_equal(shell("docker ps -a --filter label=airlock.instance --format '{{.Names}}'"),
                        "other");
    shell("docker rm other");
    al_backend_destroy(backend);
}

/* Its container is removed behind its back: as if somebody had pruned. */
static void test_container_removed__is_an_error_of_the_backend(void **state)
{
    (void)state;
    struct al_backend *backend = create_available();
    struct al_job_spec spec = nap_spec(backend);
    struct al_test_run run;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(wait_for_naps(true) ? strlen(shell("docker rm -f $(docker ps -q)")) == 0 : 1);
    }
    al_test_run(backend, &spec, NULL, &run);
    waitpid(pid, NULL, 0);
    assert_true(run.rc < 0);
    assert_non_null(strstr(run.err.text, "docker"));
    assert_false(naps());
    al_test_run_finish(&run);
    al_backend_destroy(backend);
}

/* --- the daemon dies --- */

/* In its pid namespace it is the first process, and everything of it dies with it. */
static void test_daemon_killed__the_job_ends_with_an_error_at_once(void **state)
{
    (void)state;
    struct al_backend *backend = create_available();
    struct al_job_spec spec = nap_spec(backend);
    struct al_test_run run;
    const char *host = getenv("AIRLOCK_TEST_DOCKER");
    pid_t pid = fork();
    if (pid == 0) {
        if (wait_for_naps(true)) {
            shell("pkill -KILL -f \"^dockerd .*-H %s \"", host);
        }
        _exit(0);
    }
    al_test_run(backend, &spec, NULL, &run);
    waitpid(pid, NULL, 0);
    assert_true(run.rc < 0);
    assert_non_null(strstr(run.err.text, "docker daemon at unix:"));
    assert_true(run.took_ms < PATIENCE_MS + 30000);
    assert_int_equal(run.out[AL_STDOUT].len, 6); /* "ready\n" is kept */
    al_test_run_finish(&run);
    spec = al_test_spec(backend, "bash", "echo");
    al_test_run(backend, &spec, NULL, &run);
    assert_true(run.rc < 0);
    assert_true(run.took_ms < PATIENCE_MS);
    al_test_run_finish(&run);
    al_backend_destroy(backend);
    assert_true(wait_for_naps(false));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_configured__is_off),
        cmocka_unit_test(test_no_daemon__says_so),
        cmocka_unit_test(test_no_image__leaves_the_other_languages),
        cmocka_unit_test(test_no_program__leaves_the_language_out),
        cmocka_unit_test(test_required_layer_that_docker_has_not),
        cmocka_unit_test(test_another_image__takes_the_place_of_the_one_before),
        cmocka_unit_test(test_init__survives_its_program),
        cmocka_unit_test(test_layers__are_those_that_hold),
        cmocka_unit_test(test_tls__carries_output_and_input),
        cmocka_unit_test(test_tls__a_daemon_that_another_authority_signed_is_not_believed),
        cmocka_unit_test(test_tls__a_certificate_that_is_not_there),
        cmocka_unit_test(test_many_at_once__each_its_own),
        cmocka_unit_test(test_airlockd_killed__nothing_runs_and_the_next_start_reaps),
        cmocka_unit_test(test_container_removed__is_an_error_of_the_backend),
        cmocka_unit_test(test_daemon_killed__the_job_ends_with_an_error_at_once),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* as airlockd does */
    if (!getenv("AIRLOCK_TEST_DOCKER") || !getenv("AIRLOCK_TEST_DOCKER_TCP")) {
        fprintf(stderr, "there is no daemon: run it by tests/support/dockerd --tls\n");
        return EXIT_FAILURE;
    }
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests_name("daemon", tests, make_data_dir, remove_data_dir);
}
