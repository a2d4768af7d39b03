#include "tests/support/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/docker/docker.h"
#include "backends/echo/echo.h"
#include "backends/jail/jail.h"
#include "backends/launcher/client.h"
#include "backends/local/local.h"
#include "backends/native/native.h"

#define SLOW_TIMES 6

static struct al_launcher *launcher;
static struct al_backend *backends[AL_TEST_BACKENDS];
static struct al_docker_config docker_config;
static char dir[] = "/tmp/airlock-test-XXXXXX";
#define RANDOM_PART (sizeof dir - sizeof "XXXXXX")

static const char config_text[] = "[local]\nallow_unsafe = yes\n";
static const char slow_text[] = "[cells]\nprepared = 2\nprestarted = 1\n";

static void remove_dir(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/airlock.conf", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/docker-instance", dir);
    unlink(path);
    rmdir(dir);
}

void al_test_fail(const char *what, const char *why)
{
    fprintf(stderr, "test set-up: %s: %s\n", what, why);
    remove_dir();
    exit(1);
}

static struct al_backend *create_docker(const char *host)
{
    static const char *const languages[] = {"python", "javascript", "typescript", "bash"};
    const char *image = getenv("AIRLOCK_TEST_DOCKER_IMAGE");
    const char *init = getenv("AIRLOCK_CONTAINER_INIT");
    struct al_err err = {0};
    al_docker_config_defaults(&docker_config);
    int rc = al_docker_config_set(&docker_config, "docker", "host", false, host, &err);
    for (size_t i = 0; i < sizeof languages / sizeof languages[0] && rc == 0; i++) {
        char section[32];
        snprintf(section, sizeof section, "image %s", languages[i]);
        rc = al_docker_config_open(&docker_config, section, &err);
        rc = rc < 0 ? rc
                    : al_docker_config_set(&docker_config, section, "image", false,
                                           image ? image : "", &err);
    }
    rc = rc < 0 ? rc : al_docker_config_check(&docker_config, &err);
    if (rc < 0) {
        al_test_fail("docker", err.text);
    }
    return al_docker_create(&docker_config, dir,
                            init ? init : "backends/docker/init/airlock-container-init");
}

void al_test_start_with(const char *config_more)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* as airlockd does */
    struct al_err err = {0};
    char config[64];
    const char *path = getenv("AIRLOCK_LAUNCHER");
    if (!path) {
        path = "backends/launcher/airlock-launcher"; /* in the test's runfiles */
    }
    memcpy(dir + RANDOM_PART, "XXXXXX", 6);
    if (!mkdtemp(dir)) {
        al_test_fail("mkdtemp", dir);
    }
    snprintf(config, sizeof config, "%s/airlock.conf", dir);
    FILE *f = fopen(config, "we");
    if (!f || fputs(config_text, f) < 0 || fputs(config_more, f) < 0 || fclose(f) != 0) {
        al_test_fail(config, "cannot be written");
    }
    if (al_launcher_start(path, config, dir, &launcher, &err) < 0) {
        al_test_fail("launcher", err.text);
    }
    backends[0] = al_echo_create();
    backends[1] = al_local_create(launcher);
    backends[2] = al_native_create(launcher);
    backends[3] =
        getenv("AIRLOCK_TEST_DOCKER") ? create_docker(getenv("AIRLOCK_TEST_DOCKER")) : NULL;
    backends[4] = al_bubblewrap_create(launcher);
    backends[5] = al_firejail_create(launcher);
}

void al_test_start(void)
{
    al_test_start_with(al_test_is_slow() ? slow_text : "");
    for (size_t i = 0; i < AL_TEST_BACKENDS; i++) {
        if (1u << i == AL_TEST_DOCKER && !getenv("AIRLOCK_TEST_DOCKER")) {
            continue;
        }
        if (!backends[i] || !backends[i]->available) {
            al_test_fail(backends[i] ? backends[i]->name : "backend",
                         backends[i] ? backends[i]->unavailable_reason : "out of memory");
        }
    }
}

void al_test_stop(void)
{
    for (size_t i = 0; i < AL_TEST_BACKENDS; i++) {
        al_backend_destroy(backends[i]);
    }
    al_launcher_destroy(launcher);
    remove_dir();
}

struct al_backend *al_test_backend_of(enum al_test_backend bit)
{
    return backends[__builtin_ctz(bit)];
}

bool al_test_is_slow(void)
{
    return getenv("AIRLOCK_TEST_SLOW") != NULL;
}

struct al_job_spec al_test_spec(const struct al_backend *backend, const char *language,
                                const char *code)
{
    static _Atomic unsigned serial;
    const int times = al_test_is_slow() ? SLOW_TIMES : 1;
    struct al_job_spec spec = {
        .tenant_id = "test",
        .user_id = "",
        .language = al_backend_find_language(backend, language),
        .code = {(const uint8_t *)code, strlen(code)},
        .workdir = "/sandbox",
        .network = AL_NETWORK_NONE,
        .quotas = AL_QUOTAS_DEFAULTS,
    };
    spec.quotas.cpu_ms *= times;
    spec.quotas.wall_ms *= times;
    if (!spec.language) {
        al_test_fail(backend->name, language);
    }
    snprintf(spec.job_id, sizeof spec.job_id, "%08x%08x", (unsigned)getpid(), serial++);
    return spec;
}

int al_test_count_processes(const char *text)
{
    al_auto_closedir DIR *proc = opendir("/proc");
    int n = 0;
    for (struct dirent *e; proc && (e = readdir(proc)) != NULL;) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        ssize_t len = e->d_name[0] >= '0' && e->d_name[0] <= '9'
                          ? al_io_read_file(AT_FDCWD, path, line, sizeof line)
                          : 0;
        n += len > 0 && memmem(line, (size_t)len, text, strlen(text)) != NULL;
    }
    return n;
}
