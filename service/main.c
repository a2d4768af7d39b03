/*
 * airlockd. The order matters: the launcher, which keeps root, is started before any thread; then
 * privilege is dropped; only then is anything read from a client.
 */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "backends/docker/docker.h"
#include "backends/echo/echo.h"
#include "backends/jail/jail.h"
#include "backends/launcher/client.h"
#include "backends/local/local.h"
#include "backends/native/native.h"
#include "service/instance.h"
#include "service/options.h"
#include "service/server.h"

#define VERSION "0.1.0"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

#define N_BACKENDS 6

/* How often trouble that lasts is logged. */
#define REPORT_MS 60000

/* How long the callers of cancelled jobs may take to get their answers. */
#define CANCEL_MS 5000
/* The same when the launcher is dead: the supervisor waits to start both again. */
#define CANCEL_ORPHANED_MS 500

struct daemon {
    struct al_config config;
    const char *config_path;
    char launcher_path[PATH_MAX];
    char container_init_path[PATH_MAX];
    int lock_fd;
    int signal_fd;
    struct al_launcher *launcher;
    struct al_backend *backends[N_BACKENDS];
    struct al_registry registry;
    struct al_server *server;
};

/* --- before the first thread --- */

/* A Stream's output goes through blocks of 508 KiB by the thousand, freed on another thread than
 * they were made on: they must come from a heap that is kept, not from fresh pages. Few arenas keep
 * what each of them holds back small. */
static void tune_malloc(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 4 << 20);
    (void)mallopt(M_ARENA_MAX, 4);
}

/* A program of ours: beside this one, or where the build puts it. */
static int find_program(const char *name, const char *built, char ret[PATH_MAX], struct al_err *err)
{
    const char *const places[] = {name, built};
    char self[PATH_MAX - 64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0) {
        return al_err_errno(err, errno, "cannot tell where this program is");
    }
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(ret, PATH_MAX, "%s/%s", self, places[i]);
        if (access(ret, X_OK) == 0) {
            return 0;
        }
    }
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "no %s beside airlockd in %.200s", name, self);
}

static int find_launcher(struct daemon *d, struct al_err *err)
{
    if (d->config.launcher[0]) {
        memcpy(d->launcher_path, d->config.launcher, sizeof d->config.launcher);
        return 0;
    }
    int r = find_program("airlock-launcher", "../backends/launcher/airlock-launcher",
                         d->launcher_path, err);
    al_err_wrap(err, "set [server] launcher");
    return r;
}

static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* SIGPIPE too: a program that closes its stdin must not end us. */
static int block_signals(int *ret_fd, struct al_err *err)
{
    sigset_t handled;
    sigset_t blocked;
    sigemptyset(&handled);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGINT);
    blocked = handled;
    sigaddset(&blocked, SIGPIPE);
    if (sigprocmask(SIG_BLOCK, &blocked, NULL) < 0) {
        return al_err_errno(err, errno, "sigprocmask");
    }
    *ret_fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd < 0 ? al_err_errno(err, errno, "signalfd") : 0;
}

static int prepare(struct daemon *d, struct al_err *err)
{
    const struct al_config *config = &d->config;
    raise_open_files();
    int r = find_launcher(d, err);
    if (r == 0) {
        r = al_instance_lock(config->data_dir, config->user, &d->lock_fd, err);
    }
    if (r == 0) {
        r = al_launcher_start(d->launcher_path, d->config_path, config->data_dir, &d->launcher,
                              err);
    }
    if (r == 0) {
        r = al_instance_drop_privileges(config->data_dir, config->user, err);
    }
    if (r == 0) {
        r = block_signals(&d->signal_fd, err);
    }
    return r;
}

/* --- backends and server --- */

static void log_backend(const struct al_backend *backend)
{
    if (backend->available) {
        al_log_info("backend %s is available (%zu languages)", backend->name, backend->n_languages);
    } else {
        al_log_warn("backend %s is not available: %s", backend->name, backend->unavailable_reason);
    }
}

/* What is wrong with it only makes it unavailable. */
static struct al_backend *make_docker(struct daemon *d)
{
    (void)find_program("airlock-container-init", "../backends/docker/init/airlock-container-init",
                       d->container_init_path, NULL);
    return al_docker_create(&d->config.docker, d->config.data_dir, d->container_init_path);
}

static int make_backends(struct daemon *d, struct al_err *err)
{
    d->backends[0] = al_native_create(d->launcher);
    d->backends[1] = al_local_create(d->launcher);
    d->backends[2] = al_echo_create();
    d->backends[3] = make_docker(d);
    d->backends[4] = al_bubblewrap_create(d->launcher);
    d->backends[5] = al_firejail_create(d->launcher);
    for (size_t i = 0; i < N_BACKENDS; i++) {
        if (!d->backends[i]) {
            return al_err_errno(err, ENOMEM, "cannot make the backends");
        }
        log_backend(d->backends[i]);
    }
    d->registry = (struct al_registry){.backends = d->backends, .n = N_BACKENDS};
    d->registry.default_backend = al_registry_find(&d->registry, d->config.default_backend);
    if (!d->registry.default_backend) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[server] default_backend: there is no backend %s",
                          d->config.default_backend);
    }
    return 0;
}

/* The address with the port that the system chose in place of 0. */
static void log_listening(const char *address, int port)
{
    size_t len = strlen(address);
    if (strncmp(address, "unix:", 5) != 0 && len > 2 && strcmp(address + len - 2, ":0") == 0) {
        al_log_info("listening on %.*s:%d", (int)(len - 2), address, port);
    } else {
        al_log_info("listening on %s", address);
    }
}

static int start_server(struct daemon *d, struct al_err *err)
{
    int ports[AL_LISTEN_MAX];
    const struct al_config *config = &d->config;
    int r = al_server_create(config, &d->registry, &d->server, err);
    for (size_t i = 0; r == 0 && i < config->n_listen; i++) {
        r = al_server_listen(d->server, config->listen[i], &ports[i], err);
    }
    if (r == 0) {
        r = al_server_start(d->server, err);
    }
    for (size_t i = 0; r == 0 && i < config->n_listen; i++) {
        log_listening(config->listen[i], ports[i]);
    }
    return r;
}

/* --- until the end --- */

enum wake_up {
    WAKE_TIMEOUT,
    WAKE_SIGNAL,
    WAKE_LAUNCHER_DIED,
    WAKE_IDLE, /* only while draining */
};

static enum wake_up wait_for_event(struct daemon *d, int64_t until_ms)
{
    struct pollfd fds[] = {
        {.fd = al_launcher_pidfd(d->launcher), .events = POLLIN},
        {.fd = d->signal_fd, .events = POLLIN},
        {.fd = al_server_idle_fd(d->server), .events = POLLIN},
    };
    for (;;) {
        int64_t left_ms = until_ms - al_now_ms();
        int timeout = left_ms <= 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
        int n = poll(fds, 3, until_ms == INT64_MAX ? -1 : timeout);
        struct signalfd_siginfo info;
        if (n > 0 && fds[0].revents) {
            return WAKE_LAUNCHER_DIED;
        }
        if (n > 0 && fds[1].revents && read(d->signal_fd, &info, sizeof info) == sizeof info) {
            return WAKE_SIGNAL;
        }
        if (n > 0 && fds[2].revents) {
            return WAKE_IDLE;
        }
        if (n == 0 && left_ms <= 0) {
            return WAKE_TIMEOUT;
        }
    }
}

/* Nothing can run any more. Exits without waiting for anything that may hang on the launcher. */
static _Noreturn void die_with_launcher(struct daemon *d)
{
    al_log_error("the launcher has died; ending");
    al_server_drain(d->server);
    al_server_cancel_jobs(d->server);
    struct pollfd idle = {.fd = al_server_idle_fd(d->server), .events = POLLIN};
    (void)poll(&idle, 1, CANCEL_ORPHANED_MS);
    _exit(EXIT_FAILED);
}

static void drain(struct daemon *d)
{
    al_log_info("draining for at most %lld ms", (long long)d->config.drain_ms);
    al_server_drain(d->server);
    enum wake_up why = wait_for_event(d, al_now_ms() + d->config.drain_ms);
    if (why == WAKE_TIMEOUT || why == WAKE_SIGNAL) {
        al_log_info("cancelling the jobs that are left");
        al_server_cancel_jobs(d->server);
        why = wait_for_event(d, al_now_ms() + CANCEL_MS);
    }
    if (why == WAKE_LAUNCHER_DIED) {
        die_with_launcher(d);
    }
}

/* What is freed lies between what is not, and stays resident until somebody asks for it back: after
 * many different jobs some megabytes, after a client that resets streams by the thousand gigabytes.
 */
static void serve(struct daemon *d)
{
    enum wake_up why;
    do {
        al_server_report(d->server);
        (void)malloc_trim(0);
        why = wait_for_event(d, al_now_ms() + REPORT_MS);
    } while (why == WAKE_TIMEOUT);
    if (why == WAKE_LAUNCHER_DIED) {
        die_with_launcher(d);
    }
    drain(d);
}

static void finish(struct daemon *d)
{
    al_server_destroy(d->server);
    for (size_t i = 0; i < N_BACKENDS; i++) {
        al_backend_destroy(d->backends[i]);
    }
    al_launcher_destroy(d->launcher);
    al_close_fd(&d->signal_fd);
    al_close_fd(&d->lock_fd);
}

/* gRPC stops listening for good when it cannot accept a connection, mostly for want of fds. A
 * server that only looks alive is worse than none: it drains and ends, and its supervisor starts it
 * anew. */
static atomic_bool listener_is_lost;

static void notice_lost_listener(const char *message)
{
    if (strstr(message, "Failed accept4") && !atomic_exchange(&listener_is_lost, true)) {
        al_log_error("no connection can be accepted any more (LimitNOFILE too small?); ending");
        (void)kill(getpid(), SIGTERM);
    }
}

static void log_grpc(gpr_log_func_args *args)
{
    notice_lost_listener(args->message);
    if (args->severity == GPR_LOG_SEVERITY_ERROR) {
        al_log_warn("grpc: %.400s", args->message);
    }
}

static int run(struct daemon *d)
{
    struct al_err err = {0};
    if (prepare(d, &err) < 0) {
        al_log_error("%s", err.text);
        finish(d);
        return err.code == AL_ERR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    gpr_set_log_function(log_grpc);
    grpc_init();
    int r = make_backends(d, &err);
    if (r == 0) {
        r = start_server(d, &err);
    }
    if (r == 0) {
        serve(d);
        al_log_info("ended");
    } else {
        al_log_error("%s", err.text);
    }
    finish(d);
    grpc_shutdown();
    if (atomic_load(&listener_is_lost)) {
        return EXIT_FAILED;
    }
    return r == 0 ? EXIT_SUCCESS : err.code == AL_ERR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

static int check_config(struct daemon *d)
{
    struct al_err err = {0};
    int r = find_launcher(d, &err);
    if (r == 0) {
        r = al_launcher_check_config(d->launcher_path, d->config_path, &err);
    }
    if (r < 0) {
        (void)fprintf(stderr, "airlockd: %s\n", err.text);
        return EXIT_USAGE;
    }
    (void)puts("the configuration is good");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct daemon d = {.lock_fd = -1, .signal_fd = -1};
    struct al_options options;
    struct al_err err = {0};
    al_log_init("airlockd", AL_LOG_INFO);
    tune_malloc();
    if (al_options_parse(argc, argv, &options, &err) < 0) {
        (void)fprintf(stderr, "airlockd: %s\ntry: airlockd --help\n", err.text);
        return EXIT_USAGE;
    }
    if (options.help || options.version) {
        (void)fputs(options.help ? al_options_help : "airlockd " VERSION "\n", stdout);
        return EXIT_SUCCESS;
    }
    d.config_path = options.config;
    if (al_options_configure(&options, &d.config, &err) < 0) {
        (void)fprintf(stderr, "airlockd: %s\n", err.text);
        return EXIT_USAGE;
    }
    return options.check_config ? check_config(&d) : run(&d);
}
