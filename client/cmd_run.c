#include <string.h>
#include <unistd.h>

#include "backends/base/cleanup.h"
#include "client/artifacts.h"
#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"
#include "client/request.h"

static struct al_program_output print_result(const struct al_options *options,
                                             const Airlock__V1__ExecutionResult *result)
{
    struct al_program_output output = {0};
    if (options->json) {
        output.rc = al_output_json(&result->base, true);
    } else {
        al_cli_write_program(&output, STDOUT_FILENO, &result->stdout);
        al_cli_write_program(&output, STDERR_FILENO, &result->stderr);
    }
    return output;
}

static int run(struct al_cli *cli, const Airlock__V1__RunRequest *request, int folder)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__RunResponse *response;
    struct al_call_status status;
    if (al_client_run(cli->client, request, &cli->call, &arena, &response, &status) < 0) {
        return al_cli_call_failed(cli, &status);
    }
    if (!response->result) {
        al_output_error("the server sent no result");
        return AL_EXIT_AIRLOCK;
    }
    struct al_program_output output = print_result(cli->options, response->result);
    return al_cli_finish_run(cli->options, folder, response->result, &output);
}

int al_cmd_run(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    al_auto_close int folder = -1;
    Airlock__V1__RunRequest *request;
    struct al_err err = {0};
    struct al_cli cli;
    if (options->run.follow) {
        return al_cmd_stream(options);
    }
    int rc = al_request_create(options, options->run.forward_stdin, &arena, &request, &err);
    if (rc == 0 && options->run.out) {
        rc = folder = al_artifacts_open_folder(options->run.out, &err);
    }
    if (rc < 0) {
        al_output_error("%s", err.text);
        return AL_EXIT_AIRLOCK;
    }
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    int code = run(&cli, request, folder);
    al_cli_disconnect(&cli);
    return code;
}
