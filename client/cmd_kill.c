#include <unistd.h>

#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"
#include "client/summary.h"

static int print_answer(const struct al_options *options, const Airlock__V1__KillResponse *response)
{
    struct al_text text = {0};
    if (options->json) {
        return al_output_json(&response->base, true);
    }
    if (response->killed) {
        al_text_add(&text, "job %s: killed\n", options->job_id);
    } else {
        al_text_add(&text, "job %s: had ended before (%s)\n", options->job_id,
                    al_status_word(response->status));
    }
    return al_text_flush(&text, STDOUT_FILENO);
}

int al_cmd_kill(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__KillRequest request = AIRLOCK__V1__KILL_REQUEST__INIT;
    Airlock__V1__KillResponse *response;
    struct al_call_status status;
    struct al_cli cli;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    request.job_id = (char *)options->job_id;
    int rc = al_client_kill(cli.client, &request, &cli.call, &arena, &response, &status);
    int code = rc < 0 ? al_cli_call_failed(&cli, &status)
                      : al_cli_output_done(print_answer(options, response));
    al_cli_disconnect(&cli);
    return code;
}
