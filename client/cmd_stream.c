#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "client/artifacts.h"
#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"
#include "client/request.h"
#include "client/terminal.h"

#define INPUT_BYTES  ((size_t)32 << 10)
#define END_GRACE_MS 2000 /* for the end of the call after the result */

/* A thread that forwards standard input until its end, the call's or `stop`. */
struct input {
    struct al_stream *stream;
    int stop;
    int size; /* the terminal has another one; -1: nobody asks */
    pthread_t thread;
    bool started;
};

static int send_size(const struct input *input)
{
    uint32_t rows, cols;
    al_terminal_take_change(input->size);
    al_terminal_size(&rows, &cols);
    return rows > 0 ? al_stream_send_resize(input->stream, rows, cols, -1) : 0;
}

static void *forward_input(void *arg)
{
    struct input *input = arg;
    uint8_t bytes[INPUT_BYTES];
    for (;;) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = input->stop, .events = POLLIN},
                               {.fd = input->size, .events = POLLIN}};
        if (TEMP_FAILURE_RETRY(poll(fds, 3, -1)) < 0 || fds[1].revents) {
            return NULL;
        }
        if (fds[2].revents && send_size(input) < 0) {
            return NULL;
        }
        if (!fds[0].revents) {
            continue;
        }
        ssize_t got = TEMP_FAILURE_RETRY(read(STDIN_FILENO, bytes, sizeof bytes));
        if (got < 0 && errno == EAGAIN) {
            continue;
        }
        if (got <= 0) {
            (void)al_stream_half_close(input->stream, -1);
            return NULL;
        }
        if (al_stream_send_stdin(input->stream, bytes, (size_t)got, -1) < 0) {
            return NULL;
        }
    }
}

static int start_input(struct input *input, struct al_stream *stream)
{
    input->stream = stream;
    input->stop = eventfd(0, EFD_CLOEXEC);
    if (input->stop < 0) {
        return -errno;
    }
    int rc = -pthread_create(&input->thread, NULL, forward_input, input);
    input->started = rc == 0;
    return rc;
}

/* The call has ended, so that no send is waiting. */
static void stop_input(struct input *input)
{
    if (input->started) {
        eventfd_write(input->stop, 1);
        pthread_join(input->thread, NULL);
    }
    al_close_fd(&input->stop);
}

/* What became of a stream. */
struct outcome {
    struct al_arena *arena; /* of the last message, if that was the result */
    const Airlock__V1__ExecutionResult *result;
    struct al_program_output output;
};

static void print_message(const struct al_options *options,
                          const Airlock__V1__StreamResponse *message,
                          struct al_program_output *output)
{
    if (options->json) {
        output->rc = al_output_json(&message->base, false);
    } else if (message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDOUT) {
        al_cli_write_program(output, STDOUT_FILENO, &message->stdout);
    } else if (message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDERR) {
        al_cli_write_program(output, STDERR_FILENO, &message->stderr);
    }
}

static void follow(const struct al_options *options, struct al_stream *stream,
                   struct outcome *outcome)
{
    while (outcome->output.rc == 0) {
        al_auto_arena struct al_arena *arena = NULL;
        Airlock__V1__StreamResponse *message;
        int64_t timeout_ms = outcome->result ? END_GRACE_MS : -1;
        if (al_stream_next(stream, timeout_ms, &arena, &message) != AL_STREAM_MESSAGE) {
            return;
        }
        print_message(options, message, &outcome->output);
        if (message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_RESULT && !outcome->result) {
            outcome->result = message->result;
            outcome->arena = al_steal(arena);
        }
    }
}

/* Cancels what is left of the call, so that the input's thread finds its end. */
static void drain(struct al_stream *stream)
{
    struct al_arena *arena = NULL;
    Airlock__V1__StreamResponse *message;
    al_stream_cancel(stream);
    while (al_stream_next(stream, -1, &arena, &message) == AL_STREAM_MESSAGE) {
        al_arena_destroy(arena);
    }
}

static int conclude(const struct al_cli *cli, const struct al_stream *stream,
                    const struct outcome *outcome, int folder)
{
    if (outcome->result) {
        return al_cli_finish_run(cli->options, folder, outcome->result, &outcome->output);
    }
    if (outcome->output.rc != 0) {
        return al_cli_output_done(outcome->output.rc);
    }
    const struct al_call_status *status = al_stream_status(stream);
    if (status->code == GRPC_STATUS_OK) {
        al_output_error("the stream ended without a result");
        return AL_EXIT_AIRLOCK;
    }
    return al_cli_call_failed(cli, status);
}

static int stream(struct al_cli *cli, Airlock__V1__RunRequest *request, int folder, int size_fd)
{
    struct input input = {.stop = -1, .size = size_fd};
    struct outcome outcome = {0};
    Airlock__V1__StreamStart start = AIRLOCK__V1__STREAM_START__INIT;
    Airlock__V1__TerminalSize size = AIRLOCK__V1__TERMINAL_SIZE__INIT;
    struct al_stream *s = al_stream_create(cli->client, &cli->call);
    const char *file = cli->options->run.file;
    bool code_from_stdin = file && strcmp(file, "-") == 0;
    start.request = request;
    if (cli->options->run.tty) {
        al_terminal_size(&size.rows, &size.cols);
        start.terminal = &size;
    }
    int rc = s ? al_stream_send_start(s, &start, -1) : -ENOMEM;
    if (rc == 0) {
        rc = code_from_stdin ? al_stream_half_close(s, -1) : start_input(&input, s);
    }
    if (rc == 0 && cli->options->run.tty) {
        rc = al_terminal_enter();
    }
    int code = AL_EXIT_AIRLOCK;
    if (rc == 0 || rc == -EPIPE) {
        follow(cli->options, s, &outcome);
        drain(s);
        al_terminal_leave();
        code = conclude(cli, s, &outcome, folder);
    } else {
        al_output_error("the stream cannot start: %s", strerror(-rc));
    }
    stop_input(&input);
    al_stream_destroy(s);
    al_arena_destroy(outcome.arena);
    return code;
}

int al_cmd_stream(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    al_auto_close int folder = -1;
    Airlock__V1__RunRequest *request;
    struct al_err err = {0};
    struct al_cli cli;
    int rc = al_request_create(options, false, &arena, &request, &err);
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
    int code = stream(&cli, request, folder, size_fd);
    al_cli_disconnect(&cli);
    return code;
}
