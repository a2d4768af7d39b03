#include <unistd.h>

#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"

static int print_quota(const struct al_options *options,
                       const Airlock__V1__GetQuotaResponse *response)
{
    struct al_text text = {0};
    if (options->json) {
        return al_output_json(&response->base, true);
    }
    al_text_add(&text, "cpu   %.1f of %.1f CPU-seconds a minute left\n",
                response->cpu_seconds_remaining, response->cpu_seconds_per_minute);
    al_text_add(&text, "jobs  %u of %u in flight\n", response->inflight, response->max_inflight);
    return al_text_flush(&text, STDOUT_FILENO);
}

int al_cmd_quota(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__GetQuotaRequest request = AIRLOCK__V1__GET_QUOTA_REQUEST__INIT;
    Airlock__V1__GetQuotaResponse *response;
    struct al_call_status status;
    struct al_cli cli;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    int rc = al_client_get_quota(cli.client, &request, &cli.call, &arena, &response, &status);
    int code = rc < 0 ? al_cli_call_failed(&cli, &status)
                      : al_cli_output_done(print_quota(options, response));
    al_cli_disconnect(&cli);
    return code;
}
