#include "client/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/artifacts.h"
#include "client/exit_code.h"
#include "client/output.h"
#include "client/summary.h"

bool al_cli_connect(struct al_cli *cli, const struct al_options *options)
{
    struct al_client_options where = {
        .address = options->server,
        .tenant = options->tenant,
        .resumes = options->command == AL_COMMAND_ATTACH || options->run.linger_seconds > 0,
    };
    *cli = (struct al_cli){.options = options, .call.deadline_ms = options->timeout_ms};
    cli->interrupt = al_interrupt_create();
    cli->client = cli->interrupt ? al_client_create(&where) : NULL;
    if (!cli->client || al_interrupt_start(cli->interrupt, cli->client) < 0) {
        al_output_error("out of memory, threads or file descriptors");
        al_cli_disconnect(cli);
        return false;
    }
    return true;
}

void al_cli_disconnect(struct al_cli *cli)
{
    al_interrupt_destroy(cli->interrupt);
    al_client_destroy(cli->client);
}

int al_cli_call_failed(const struct al_cli *cli, const struct al_call_status *status)
{
    int signo = al_interrupt_signal(cli->interrupt);
    if (signo != 0) {
        return AL_EXIT_SIGNAL + signo;
    }
    al_output_call_error(cli->options->server, status);
    return al_exit_code_of_status(status->code);
}

int al_cli_output_done(int rc)
{
    if (rc == 0) {
        return 0;
    }
    if (rc == -EPIPE) {
        return AL_EXIT_BROKEN_PIPE;
    }
    al_output_error("standard output: %s", strerror(-rc));
    return AL_EXIT_AIRLOCK;
}

/* Says what was written only where that is wanted, and always what was not, or not in full. */
static bool write_artifact(const struct al_run_options *run, int folder,
                           const Airlock__V1__Artifact *artifact, bool wanted)
{
    struct al_err err = {0};
    if (al_artifacts_write(folder, artifact, !run->keeps_files, &err) < 0) {
        al_output_error("artifact %s", err.text);
        return false;
    }
    if (wanted || artifact->truncated) {
        al_output_error("artifact %s: %s %zu bytes", artifact->path,
                        artifact->truncated ? "cut after" : "wrote", artifact->content.len);
    }
    return true;
}

static bool write_artifacts(const struct al_run_options *run, int folder,
                            const Airlock__V1__ExecutionResult *result, bool wanted)
{
    bool all = true;
    for (size_t i = 0; i < result->n_artifacts; i++) {
        all &= write_artifact(run, folder, result->artifacts[i], wanted);
    }
    return all;
}

void al_cli_write_program(struct al_program_output *output, int fd,
                          const ProtobufCBinaryData *bytes)
{
    int rc = al_output_write(fd, bytes->data, bytes->len);
    bool seen_there = fd == STDERR_FILENO || (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO));
    if (fd == STDOUT_FILENO && output->rc == 0) {
        output->rc = rc;
    }
    if (bytes->len > 0 && seen_there) {
        output->mid_line = bytes->data[bytes->len - 1] != '\n';
    }
}

int al_cli_finish_run(const struct al_options *options, int folder,
                      const Airlock__V1__ExecutionResult *result,
                      const struct al_program_output *output)
{
    bool wanted = options->run.stats || isatty(STDERR_FILENO);
    bool mid_line = output->mid_line;
    if (mid_line && wanted && folder >= 0 && result->n_artifacts > 0) {
        (void)al_output_write(STDERR_FILENO, "\n", 1);
        mid_line = false;
    }
    bool written = folder < 0 || write_artifacts(&options->run, folder, result, wanted);
    if (output->rc != 0) {
        return al_cli_output_done(output->rc);
    }
    al_summary_print(result, wanted, mid_line);
    int code = al_exit_code_of_result(result);
    return code == 0 && !written ? AL_EXIT_AIRLOCK : code;
}
