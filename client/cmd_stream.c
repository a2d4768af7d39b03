#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "client/artifacts.h"
#include "client/cli.h"
#include "client/exit_code.h"
#include "client/follow.h"
#include "client/output.h"
#include "client/request.h"
#include "client/terminal.h"

/* More than the buffers between a program and us hold. */
#define STDIN_KEEP_BYTES ((size_t)16 << 20)

/* How long `attach`, which does not know how long the job lingers, tries a broken connection. */
#define ATTACH_PATIENCE_MS 60000

/* How long Ctrl-C may take to kill a job that lingers. */
#define KILL_MS 2000

static bool is_to_end(int signo)
{
    return signo == SIGINT || signo == SIGTERM;
}

/* The connection is cancelled, which does not end a job that lingers: says so on another one. */
static void kill_job(const struct al_options *options, const char *job_id)
{
    const struct al_client_options where = {.address = options->server, .tenant = options->tenant};
    const struct al_call_options call = {.deadline_ms = KILL_MS};
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__KillRequest request = AIRLOCK__V1__KILL_REQUEST__INIT;
    Airlock__V1__KillResponse *response;
    struct al_call_status status;
    struct al_client *client = al_client_create(&where);
    request.job_id = (char *)job_id;
    if (!client || al_client_kill(client, &request, &call, &arena, &response, &status) < 0) {
        al_output_error("job %s may still run: airlock kill %s", job_id, job_id);
    }
    al_client_destroy(client);
}

static void stream(struct al_follow *follow, Airlock__V1__RunRequest *request, int *ret_code)
{
    const struct al_options *options = follow->cli->options;
    Airlock__V1__StreamStart start = AIRLOCK__V1__STREAM_START__INIT;
    Airlock__V1__TerminalSize size = AIRLOCK__V1__TERMINAL_SIZE__INIT;
    const char *file = options->run.file;
    bool is_run = options->command == AL_COMMAND_RUN;
    start.request = request;
    start.linger_seconds = options->run.linger_seconds;
    if (options->run.tty) {
        al_terminal_size(&size.rows, &size.cols);
        start.terminal = &size;
    }
    follow->start = &start;
    follow->patience_ms = (int64_t)(options->run.linger_seconds * 1000);
    follow->feed_options.reads = true;
    follow->feed_options.is_at_end = is_run || (file && strcmp(file, "-") == 0);
    follow->feed_options.keep_max = follow->patience_ms > 0 ? STDIN_KEEP_BYTES : 0;
    follow->shows_progress = is_run && !options->json;
    *ret_code = al_follow_job(follow);
}

/* Also `run --follow`: it differs in that standard input, if wanted, is part of the request. */
int al_cmd_stream(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    al_auto_close int folder = -1;
    Airlock__V1__RunRequest *request;
    struct al_err err = {0};
    struct al_cli cli;
    bool reads_all = options->command == AL_COMMAND_RUN && options->run.forward_stdin;
    int rc = al_request_create(options, reads_all, &arena, &request, &err);
    if (rc == 0 && options->run.out) {
        rc = folder = al_artifacts_open_folder(options->run.out, &err);
    }
    if (rc < 0) {
        al_output_error("%s", err.text);
        return AL_EXIT_AIRLOCK;
    }
    al_auto_close int size_fd = options->run.tty ? al_terminal_watch_size() : -1;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    struct al_follow follow = {.cli = &cli, .folder = folder, .feed_options.size_fd = size_fd};
    int code;
    stream(&follow, request, &code);
    int signo = al_interrupt_signal(cli.interrupt);
    al_cli_disconnect(&cli);
    if (is_to_end(signo) && follow.patience_ms > 0 && follow.job_id[0]) {
        kill_job(options, follow.job_id);
    }
    return code;
}

int al_cmd_attach(const struct al_options *options)
{
    al_auto_close int folder = -1;
    struct al_err err = {0};
    struct al_cli cli;
    if (options->run.out && (folder = al_artifacts_open_folder(options->run.out, &err)) < 0) {
        al_output_error("%s", err.text);
        return AL_EXIT_AIRLOCK;
    }
    al_auto_close int size_fd = options->run.tty ? al_terminal_watch_size() : -1;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    struct al_follow follow = {
        .cli = &cli,
        .sequence = options->after_sequence,
        .patience_ms = ATTACH_PATIENCE_MS,
        .folder = folder,
        .feed_options = {.reads = options->run.forward_stdin || isatty(STDIN_FILENO),
                         .keep_max = STDIN_KEEP_BYTES,
                         .size_fd = size_fd},
    };
    memcpy(follow.job_id, options->job_id, sizeof follow.job_id);
    int code = al_follow_job(&follow);
    al_cli_disconnect(&cli);
    return code;
}
