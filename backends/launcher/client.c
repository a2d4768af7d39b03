#include "backends/launcher/client.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/bundle.h"
#include "backends/launcher/may_prestart.h"

#define HELLO_MS 30000 /* every runtime is asked for its version first */

struct al_launcher {
    int socket; /* sends of whole datagrams need no lock */
    int pidfd;
    pid_t pid;
    struct al_msg_hello hello;
    struct al_language languages[AL_RUNTIMES_MAX];
    struct al_launcher_info info;
};

static _Noreturn void exec_launcher(const char *path, const char *config, const char *data_dir,
                                    int socket)
{
    char number[16];
    snprintf(number, sizeof number, "%d", socket);
    fcntl(socket, F_SETFD, 0);
    const char *argv[] = {path, "--socket", number, "--data-dir", data_dir, NULL, NULL, NULL};
    if (config) {
        argv[5] = "--config";
        argv[6] = config;
    }
    execv(path, (char *const *)argv);
    _exit(127);
}

static void fill_info(struct al_launcher *l)
{
    for (size_t i = 0; i < AL_CELL_KINDS; i++) {
        l->info.cells[i].available = l->hello.cells[i].available;
        l->info.cells[i].layers = l->hello.cells[i].layers;
        memcpy(l->info.cells[i].version, l->hello.cells[i].version, AL_CELL_VERSION_MAX);
        memcpy(l->info.cells[i].reason, l->hello.cells[i].reason, AL_UNAVAILABLE_MAX);
    }
    for (size_t i = 0; i < l->hello.n_runtimes; i++) {
        const struct al_msg_runtime *rt = &l->hello.runtimes[i];
        struct al_language *lang = &l->languages[i];
        *lang = (struct al_language){.name = rt->name,
                                     .version = rt->version,
                                     .code_file = rt->code_file,
                                     .output_file = rt->output_file[0] ? rt->output_file : NULL};
        for (size_t k = 0; k < AL_LANGUAGE_ALIASES_MAX && rt->aliases[k][0]; k++) {
            lang->aliases[k] = rt->aliases[k];
        }
    }
    l->info.languages = l->languages;
    l->info.n_languages = l->hello.n_runtimes;
}

static int receive_hello(struct al_launcher *l, struct al_err *err)
{
    uint8_t data[AL_MSG_BYTES_MAX];
    struct pollfd pfd = {.fd = l->socket, .events = POLLIN};
    if (poll(&pfd, 1, HELLO_MS) != 1) {
        return al_err_set(err, AL_ERR_INTERNAL, "the launcher did not answer within %d s",
                          HELLO_MS / 1000);
    }
    ssize_t got = recv(l->socket, data, sizeof data, 0);
    if (got <= 0 || al_msg_decode_hello(data, (size_t)got, &l->hello) < 0) {
        return al_err_set(err, AL_ERR_INTERNAL,
                          "the launcher ended before it was ready (see above)");
    }
    fill_info(l);
    return 0;
}

int al_launcher_start(const char *path, const char *config, const char *data_dir,
                      struct al_launcher **ret, struct al_err *err)
{
    int fds[2];
    struct al_launcher *l = calloc(1, sizeof *l);
    if (!l || access(path, X_OK) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        int rc = al_err_errno(err, l ? errno : ENOMEM, "cannot start the launcher %s", path);
        free(l);
        return rc;
    }
    l->pidfd = -1;
    l->pid = fork();
    if (l->pid == 0) {
        exec_launcher(path, config, data_dir, fds[1]);
    }
    close(fds[1]);
    l->socket = fds[0];
    int rc = l->pid < 0 ? al_err_errno(err, errno, "fork") : receive_hello(l, err);
    if (rc == 0) {
        l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
        rc = l->pidfd < 0 ? al_err_errno(err, errno, "pidfd_open") : 0;
    }
    if (rc < 0) {
        if (l->pid > 0) {
            kill(l->pid, SIGKILL); /* it may hang, and must not keep us; its reaper tidies up */
        }
        al_launcher_destroy(l);
        return rc;
    }
    *ret = l;
    return 0;
}

int al_launcher_check_config(const char *path, const char *config, struct al_err *err)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl(path, path, "--check-config", config ? "--config" : NULL, config, NULL);
        _exit(127);
    }
    int status = 0;
    if (pid < 0 || TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0) {
        return al_err_errno(err, errno, "cannot start the launcher %s", path);
    }
    return status == 0 ? 0
                       : al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                                    "the launcher refuses the configuration (see above)");
}

void al_launcher_destroy(struct al_launcher *l)
{
    if (!l) {
        return;
    }
    close(l->socket);
    if (l->pid > 0) {
        TEMP_FAILURE_RETRY(waitpid(l->pid, NULL, 0));
    }
    al_close_fd(&l->pidfd);
    free(l);
}

const struct al_launcher_info *al_launcher_info(const struct al_launcher *l)
{
    return &l->info;
}

int al_launcher_pidfd(const struct al_launcher *l)
{
    return l->pidfd;
}

static int send_spawn(struct al_launcher *l, enum al_cell_kind kind, const struct al_job_spec *spec,
                      int control, struct al_err *err)
{
    al_auto_close int bundle = al_bundle_create(spec);
    if (bundle < 0) {
        return al_err_errno(err, -bundle, "cannot pack the job");
    }
    struct al_msg_spawn m = {
        .kind = kind, .may_prestart = al_job_may_prestart(spec), .quotas = spec->quotas};
    m.terminal = spec->terminal;
    m.quotas.artifact_bytes = spec->n_artifacts > 0 ? spec->quotas.artifact_bytes : 0;
    snprintf(m.job_id, sizeof m.job_id, "%s", spec->job_id);
    snprintf(m.workdir, sizeof m.workdir, "%s", spec->workdir);
    snprintf(m.runtime, sizeof m.runtime, "%s@%s", spec->language->name, spec->language->version);
    uint8_t data[1024];
    struct iovec iov = {.iov_base = data, .iov_len = al_msg_encode_spawn(&m, data)};
    int fds[] = {control, bundle};
    int rc = al_io_send_fds(l->socket, &iov, 1, fds, 2, true);
    return rc < 0 ? al_err_errno(err, -rc, "the launcher does not listen") : 0;
}

/* `artifacts`: the job has a pipe for them. */
static int receive_spawned(int control, bool artifacts, struct al_launched *ret, struct al_err *err)
{
    uint8_t data[1024];
    int fds[AL_IO_FDS_MAX];
    size_t compile = 3 + artifacts;
    size_t n = 0;
    ssize_t got = al_io_recv_fds(control, data, sizeof data, fds, &n);
    if (got > 0 && n >= compile && al_msg_decode_empty(AL_MSG_SPAWNED, data, (size_t)got) == 0) {
        *ret = (struct al_launched){.control = -1,
                                    .terminal_fd = -1,
                                    .stdin_fd = fds[0],
                                    .stdout_fd = fds[1],
                                    .stderr_fd = fds[2],
                                    .artifacts_fd = artifacts ? fds[3] : -1,
                                    .compile_fd = n > compile ? fds[compile] : -1};
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        close(fds[i]);
    }
    struct al_msg_refused refused;
    if (got > 0 && al_msg_decode_refused(data, (size_t)got, &refused) == 0) {
        return al_err_set(err, AL_ERR_INTERNAL, "the launcher refused the job: %s", refused.text);
    }
    return al_err_set(err, AL_ERR_INTERNAL, "the launcher is gone");
}

int al_launcher_spawn(struct al_launcher *l, enum al_cell_kind kind, const struct al_job_spec *spec,
                      struct al_launched *ret, struct al_err *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        return al_err_errno(err, errno, "socketpair");
    }
    al_auto_close int mine = fds[0];
    int rc = send_spawn(l, kind, spec, fds[1], err);
    close(fds[1]); /* only the launcher's copy is left: its end is ours */
    rc = rc < 0 ? rc : receive_spawned(mine, spec->n_artifacts > 0, ret, err);
    if (rc == 0) {
        al_io_set_nonblock(mine, true);
        ret->control = al_steal_fd(&mine);
        if (spec->terminal.rows > 0) {
            ret->terminal_fd = al_steal_fd(&ret->stdin_fd);
        }
    }
    return rc;
}

void al_launched_close(struct al_launched *job)
{
    al_close_fd(&job->control);
    al_close_fd(&job->terminal_fd);
    al_close_fd(&job->stdin_fd);
    al_close_fd(&job->stdout_fd);
    al_close_fd(&job->stderr_fd);
    al_close_fd(&job->artifacts_fd);
    al_close_fd(&job->compile_fd);
}
