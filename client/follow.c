#include "client/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "backends/base/clock.h"
#include "client/exit_code.h"
#include "client/output.h"
#include "client/terminal.h"

#define END_GRACE_MS  2000 /* for the end of the call after the result */
#define RETRY_MIN_MS  100
#define RETRY_MAX_MS  2000
#define RETRY_STEP_MS 50 /* Ctrl-C is noticed within this */

/* The user wants no more of it. */
static bool is_interrupted(const struct al_follow *follow)
{
    return follow->has_left || al_interrupt_signal(follow->cli->interrupt) != 0;
}

/* --- one message --- */

static void print_output(struct al_follow *follow, int fd, const ProtobufCBinaryData *bytes)
{
    if (isatty(fd)) {
        al_progress_clear(&follow->progress);
    }
    al_cli_write_program(&follow->output, fd, bytes);
}

static void print_message(struct al_follow *follow, const Airlock__V1__StreamResponse *message)
{
    al_progress_note(&follow->progress, message);
    if (follow->cli->options->json) {
        follow->output.rc = al_output_json(&message->base, false);
    } else if (message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDOUT) {
        print_output(follow, STDOUT_FILENO, &message->stdout);
    } else if (message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_STDERR) {
        print_output(follow, STDERR_FILENO, &message->stderr);
    }
}

/* It may have changed while nobody listened. */
static void send_size(struct al_follow *follow)
{
    uint32_t rows, cols;
    al_terminal_size(&rows, &cols);
    if (follow->cli->options->run.tty && rows > 0) {
        (void)al_stream_send_resize(follow->stream, rows, cols, -1);
    }
}

/* The server's first answer to attach. False: this cannot go on. */
static bool take_greeting(struct al_follow *follow, uint64_t stdin_received)
{
    follow->has_greeted = true;
    send_size(follow);
    if (al_feed_use(follow->feed, follow->stream, stdin_received) == 0) {
        return true;
    }
    al_output_error("job %s: the server asks for standard input from byte %" PRIu64
                    " on, which is not kept any more",
                    follow->job_id, stdin_received);
    return false;
}

/* Events are numbered without a gap; only what was there before an attach may be missing. */
static bool take_sequence(struct al_follow *follow, uint64_t sequence)
{
    uint64_t before = follow->sequence;
    if (before == 0 && sequence > 1) {
        al_output_error("job %s: its first %" PRIu64 " events are not kept any more",
                        follow->job_id, sequence - 1);
    } else if (sequence != before + 1) {
        al_progress_clear(&follow->progress);
        al_output_error("job %s: event %" PRIu64 " came after %" PRIu64, follow->job_id, sequence,
                        before);
        return false;
    }
    follow->sequence = sequence;
    return true;
}

/* Takes over the arena with the result. False: this cannot go on. */
static bool take_message(struct al_follow *follow, const Airlock__V1__StreamResponse *message,
                         struct al_arena **arena)
{
    follow->heard_ms = al_now_ms();
    follow->is_connected = true;
    if (follow->job_id[0] == '\0' && strlen(message->job_id) < sizeof follow->job_id) {
        memcpy(follow->job_id, message->job_id, strlen(message->job_id) + 1);
    }
    if (message->sequence == 0 &&
        message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT__NOT_SET) {
        return follow->has_greeted || take_greeting(follow, message->stdin_received);
    }
    if (!take_sequence(follow, message->sequence)) {
        return false;
    }
    al_feed_received(follow->feed, message->stdin_received);
    print_message(follow, message);
    if (message->event_case == AIRLOCK__V1__STREAM_RESPONSE__EVENT_RESULT && !follow->result) {
        follow->result = message->result;
        follow->arena = al_steal(*arena);
    }
    return follow->output.rc == 0;
}

/* --- one stream --- */

static int open_stream(struct al_follow *follow)
{
    follow->has_greeted = false;
    follow->stream = al_stream_create(follow->cli->client, &follow->cli->call);
    if (!follow->stream) {
        return -ENOMEM;
    }
    if (follow->start && follow->job_id[0] == '\0') {
        int rc = al_stream_send_start(follow->stream, follow->start, -1);
        follow->has_greeted = true;
        return rc < 0 ? rc : al_feed_use(follow->feed, follow->stream, 0);
    }
    Airlock__V1__Attach attach = AIRLOCK__V1__ATTACH__INIT;
    attach.job_id = follow->job_id;
    attach.after_sequence = follow->sequence;
    return al_stream_send_attach(follow->stream, &attach, -1);
}

/* Until the call has ended. False: that was our own doing. */
static bool read_stream(struct al_follow *follow)
{
    for (;;) {
        al_auto_arena struct al_arena *arena = NULL;
        Airlock__V1__StreamResponse *message;
        bool is_last = follow->result != NULL;
        int64_t timeout_ms = is_last ? END_GRACE_MS : al_progress_wait_ms(&follow->progress);
        switch (al_stream_next(follow->stream, timeout_ms, &arena, &message)) {
        case AL_STREAM_END:
            return true;
        case AL_STREAM_TIMEOUT:
            if (is_last) {
                return false;
            }
            break;
        case AL_STREAM_MESSAGE:
            if (!take_message(follow, message, &arena)) {
                return false;
            }
        }
        if (!follow->result) {
            al_progress_show(&follow->progress, follow->output.mid_line);
        }
    }
}

/* Cancels what is left of the call, so that the feed's thread finds its end. */
static void close_stream(struct al_follow *follow)
{
    struct al_arena *arena = NULL;
    Airlock__V1__StreamResponse *message;
    al_stream_cancel(follow->stream);
    while (al_stream_next(follow->stream, -1, &arena, &message) == AL_STREAM_MESSAGE) {
        al_arena_destroy(arena);
    }
    al_feed_leave(follow->feed);
}

/* --- several of them --- */

/* Of a connection rather than of the job or of the caller. */
static bool is_broken(grpc_status_code code)
{
    return code == GRPC_STATUS_UNAVAILABLE || code == GRPC_STATUS_CANCELLED ||
           code == GRPC_STATUS_INTERNAL || code == GRPC_STATUS_UNKNOWN;
}

static bool may_retry(const struct al_follow *follow)
{
    return follow->is_connected && !follow->result && !is_interrupted(follow) &&
           is_broken(al_stream_status(follow->stream)->code) &&
           al_now_ms() - follow->heard_ms < follow->patience_ms;
}

static void wait_to_retry(const struct al_follow *follow, int64_t *wait_ms)
{
    int64_t until_ms = al_now_ms() + *wait_ms;
    while (al_now_ms() < until_ms && !is_interrupted(follow)) {
        (void)poll(NULL, 0, RETRY_STEP_MS);
    }
    *wait_ms = *wait_ms * 2 < RETRY_MAX_MS ? *wait_ms * 2 : RETRY_MAX_MS;
}

/* 0: there was an end to follow to, well or not; or why no stream could be opened. *ret_ours: we
 * have ended the call ourselves. */
static int follow_streams(struct al_follow *follow, bool *ret_ours)
{
    int64_t wait_ms = RETRY_MIN_MS;
    for (;;) {
        int64_t heard_ms = follow->heard_ms;
        int rc = open_stream(follow);
        if (rc < 0 && rc != -EPIPE) {
            return rc;
        }
        *ret_ours = !read_stream(follow);
        close_stream(follow);
        if (*ret_ours || !may_retry(follow)) {
            return 0;
        }
        if (follow->heard_ms != heard_ms) {
            wait_ms = RETRY_MIN_MS;
        }
        al_stream_destroy(al_steal(follow->stream));
        wait_to_retry(follow, &wait_ms);
    }
}

/* On the feed's thread. Whatever the connection is at then ends, and nothing follows. */
static void leave(void *arg)
{
    struct al_follow *follow = arg;
    follow->has_left = true;
    al_client_cancel(follow->cli->client);
}

static void say_how_to_attach(const struct al_follow *follow)
{
    const struct al_options *options = follow->cli->options;
    al_output_error("left job %s, which goes on; to see it again: airlock%s%s%s%s attach --tty %s",
                    follow->job_id, options->names_server ? " --server " : "",
                    options->names_server ? options->server : "",
                    options->tenant ? " --tenant " : "", options->tenant ? options->tenant : "",
                    follow->job_id);
}

static int conclude_left(const struct al_follow *follow)
{
    if (follow->output.mid_line) {
        (void)al_output_write(STDERR_FILENO, "\n", 1);
    }
    if (!follow->job_id[0]) {
        al_output_error("left before the server had named the job");
        return AL_EXIT_AIRLOCK;
    }
    if (follow->start && follow->start->linger_seconds <= 0) {
        al_output_error("left job %s, and so it is killed: it was started without --linger",
                        follow->job_id);
        return AL_EXIT_KILLED;
    }
    say_how_to_attach(follow);
    return 0;
}

static int conclude(const struct al_follow *follow, bool ours)
{
    if (follow->result) {
        return al_cli_finish_run(follow->cli->options, follow->folder, follow->result,
                                 &follow->output);
    }
    if (follow->output.rc != 0) {
        return al_cli_output_done(follow->output.rc);
    }
    if (follow->has_left) {
        return conclude_left(follow);
    }
    if (ours) {
        return AL_EXIT_AIRLOCK; /* and it was said why */
    }
    const struct al_call_status *status = al_stream_status(follow->stream);
    if (status->code == GRPC_STATUS_OK) {
        al_output_error("the stream ended without a result");
        return AL_EXIT_AIRLOCK;
    }
    return al_cli_call_failed(follow->cli, status);
}

int al_follow_job(struct al_follow *follow)
{
    bool ours = false;
    int code = AL_EXIT_AIRLOCK;
    if (follow->cli->options->run.tty && isatty(STDIN_FILENO)) {
        follow->feed_options.leave = leave;
        follow->feed_options.arg = follow;
    }
    if (follow->shows_progress) {
        al_progress_start(&follow->progress);
    }
    follow->feed = al_feed_create(&follow->feed_options);
    int rc = follow->feed ? 0 : -ENOMEM;
    if (rc == 0 && follow->cli->options->run.tty) {
        rc = al_terminal_enter();
    }
    if (rc == 0) {
        rc = follow_streams(follow, &ours);
    }
    al_terminal_leave();
    al_progress_clear(&follow->progress);
    if (rc == 0) {
        code = conclude(follow, ours);
    } else {
        al_output_error("the stream cannot start: %s", strerror(-rc));
    }
    if (follow->feed) {
        al_feed_leave(follow->feed);
    }
    al_feed_destroy(follow->feed);
    al_stream_destroy(follow->stream);
    al_arena_destroy(follow->arena);
    return code;
}
