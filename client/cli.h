/* What the commands share. Each command is a function from the command line to an exit code. */
#pragma once

#include "client/client.h"
#include "client/interrupt.h"
#include "client/options.h"

/* The exit code when nobody reads standard output any more: as if SIGPIPE had ended airlock. */
#define AL_EXIT_BROKEN_PIPE 141

struct al_cli {
    const struct al_options *options;
    struct al_interrupt *interrupt;
    struct al_client *client;
    struct al_call_options call;
};

/* Connects and starts to watch for Ctrl-C; says what failed. False: exit with AL_EXIT_AIRLOCK. */
bool al_cli_connect(struct al_cli *cli, const struct al_options *options);
void al_cli_disconnect(struct al_cli *cli);

/* Says why a call failed, unless the user interrupted it, and returns the exit code. */
int al_cli_call_failed(const struct al_cli *cli, const struct al_call_status *status);

/* The exit code after output: 0, or what the failure means; a broken pipe is not mentioned. */
int al_cli_output_done(int rc);

/* What of the program's output was written. */
struct al_program_output {
    int rc;        /* of the first write to standard output that failed */
    bool mid_line; /* a line on standard error would not begin at the left */
};

/* Writes bytes of the program to the fd of the same name. */
void al_cli_write_program(struct al_program_output *output, int fd,
                          const ProtobufCBinaryData *bytes);

/* What follows the program's output: artifacts into `folder` (-1: none asked for), and the summary
 * unless standard output failed. Returns the exit code. */
int al_cli_finish_run(const struct al_options *options, int folder,
                      const Airlock__V1__ExecutionResult *result,
                      const struct al_program_output *output);

int al_cmd_run(const struct al_options *options);
int al_cmd_stream(const struct al_options *options);
int al_cmd_attach(const struct al_options *options);
int al_cmd_kill(const struct al_options *options);
int al_cmd_backends(const struct al_options *options);
int al_cmd_jobs(const struct al_options *options);
int al_cmd_job(const struct al_options *options);
int al_cmd_quota(const struct al_options *options);
int al_cmd_cache(const struct al_options *options);
