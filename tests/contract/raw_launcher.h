/*
 * A launcher under test, spoken to in its own messages: for what a well-behaved client never sends,
 * and for killing the launcher itself.
 */
#pragma once

#include <sys/types.h>

#include "backends/launcher/client.h"
#include "backends/launcher/message.h"

/* The cells that a test is about: native ones, or those that its first argument names. */
extern enum al_cell_kind raw_kind;
void raw_choose_kind(int argc, char **argv);

struct raw_launcher {
    pid_t pid; /* 0: ended and reaped */
    int socket;
    char data_dir[40];
    char instance[32];
};

/* In a new data-dir, or again in that of `l` (raw_start_again). Both fail the test when the
 * launcher does not come up with all of its cells. */
void raw_start(struct raw_launcher *l);
void raw_start_again(struct raw_launcher *l);

/* Only the process, which gets its end of a socket; closes that here. */
pid_t raw_fork_launcher(const struct raw_launcher *l, int theirs);

/* Closes the socket and reaps; the wait status. Removes the data-dir. */
int raw_stop(struct raw_launcher *l);

/* Waits at most `ms` for the launcher to end by itself; its wait status, or -1. */
int raw_wait(struct raw_launcher *l, int64_t ms);
void raw_kill(struct raw_launcher *l); /* SIGKILL, and reaps */

/* A spec and a message for it with a new job id. Of the languages, "bash" runs the code, and
 * "typescript" runs it as its compile step, which has to write main.js, another script for bash. */
struct al_job_spec raw_spec(const char *code);
struct al_msg_spawn raw_message(enum al_cell_kind kind, const char *language);

/* Sends SPAWN with both fds, which stay the caller's. 0 or -errno. */
int raw_send(const struct raw_launcher *l, const struct al_msg_spawn *m, int control, int bundle);

/* Starts a job of that code, with the glob "*" if the message has artifact_bytes; on REFUSED the
 * error's text is in `ret_refused` (256 bytes) and -1 is returned. */
int raw_run(const struct raw_launcher *l, const struct al_msg_spawn *m, const char *code,
            struct al_launched *ret, char *ret_refused);

/* The next message of a job's control socket within `ms`: its length, 0 at the end, -1 when there
 * is none. */
ssize_t raw_receive(int control, void *data, size_t size, int64_t ms);

/* Waits for STARTED, for EXIT. False when something else, or nothing within 10 s, comes. */
bool raw_wait_started(int control);
bool raw_wait_exit(int control, struct al_msg_exit *ret);

/* A job that prints "ok" does so and exits with 0: the launcher is well. */
void raw_assert_works(const struct raw_launcher *l);

/* How many folders of cgroups this instance has left. */
int raw_count_cgroups(const struct raw_launcher *l);

/* The least and the most CPU weight that a group of this instance has, in percent of a new one's.
 */
void raw_shares(const struct raw_launcher *l, int *ret_least, int *ret_most);

/* Waits at most `ms` until no process has the text in its command line. */
bool raw_all_gone(const char *text, int64_t ms);
bool raw_no_cgroups(const struct raw_launcher *l, int64_t ms);
