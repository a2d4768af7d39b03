#include <inttypes.h>
#include <unistd.h>

#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024)

static void add_state(struct al_text *text, const Airlock__V1__GetCacheStatsResponse *stats,
                      bool colours)
{
    const char *colour = stats->working ? AL_COLOUR_GREEN : AL_COLOUR_RED;
    al_text_add(text, "cache    %s%s%s\n", colours ? colour : "",
                stats->working ? "works" : "does not work; results are not stored at the moment",
                colours ? AL_COLOUR_NONE : "");
    if (*stats->trouble) {
        al_text_add(text, "%s  ", stats->working ? "earlier" : "trouble");
        al_text_add_escaped(text, stats->trouble);
        al_text_add(text, "\n");
    }
}

static void add_size(struct al_text *text, uint64_t bytes)
{
    if ((double)bytes < MIB) {
        al_text_add(text, "%.1f KiB", (double)bytes / KIB);
    } else {
        al_text_add(text, "%.1f MiB", (double)bytes / MIB);
    }
}

static void add_room(struct al_text *text, const Airlock__V1__GetCacheStatsResponse *stats)
{
    al_text_add(text, "results  %" PRIu64 "\n", stats->entries);
    al_text_add(text, "room     ");
    add_size(text, stats->bytes);
    al_text_add(text, " of ");
    add_size(text, stats->max_bytes);
    if (stats->max_bytes > 0) {
        al_text_add(text, " (%.0f %%)", 100.0 * (double)stats->bytes / (double)stats->max_bytes);
    }
    al_text_add(text, "\n");
}

static void add_counters(struct al_text *text, const Airlock__V1__GetCacheStatsResponse *stats)
{
    double asked = (double)stats->hits + (double)stats->misses;
    al_text_add(text, "\nsince the server started\n");
    al_text_add(text, "hits     %" PRIu64 " of %.0f", stats->hits, asked);
    if (asked > 0) {
        al_text_add(text, " (%.1f %%)", 100.0 * (double)stats->hits / asked);
    }
    al_text_add(text, "\nstored   %" PRIu64 "\n", stats->puts);
    al_text_add(text, "evicted  %" PRIu64 " for room or age\n", stats->evictions);
}

static int print_stats(const struct al_options *options,
                       const Airlock__V1__GetCacheStatsResponse *stats)
{
    struct al_text text = {0};
    if (options->json) {
        return al_output_json(&stats->base, true);
    }
    if (stats->enabled) {
        add_state(&text, stats, al_output_has_colours(STDOUT_FILENO));
        add_room(&text, stats);
        add_counters(&text, stats);
    } else {
        al_text_add(&text, "cache    off: the server's configuration has [cache] max_mb = 0\n");
    }
    return al_text_flush(&text, STDOUT_FILENO);
}

static int show_stats(const struct al_cli *cli)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__GetCacheStatsRequest request = AIRLOCK__V1__GET_CACHE_STATS_REQUEST__INIT;
    Airlock__V1__GetCacheStatsResponse *response;
    struct al_call_status status;
    int rc =
        al_client_get_cache_stats(cli->client, &request, &cli->call, &arena, &response, &status);
    return rc < 0 ? al_cli_call_failed(cli, &status)
                  : al_cli_output_done(print_stats(cli->options, response));
}

static int print_cleared(const struct al_options *options,
                         const Airlock__V1__ClearCacheResponse *response)
{
    struct al_text text = {0};
    if (options->json) {
        return al_output_json(&response->base, true);
    }
    al_text_add(&text, "cache cleared: %" PRIu64 " %s dropped\n", response->entries,
                response->entries == 1 ? "result" : "results");
    return al_text_flush(&text, STDOUT_FILENO);
}

static int clear(const struct al_cli *cli)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__ClearCacheRequest request = AIRLOCK__V1__CLEAR_CACHE_REQUEST__INIT;
    Airlock__V1__ClearCacheResponse *response;
    struct al_call_status status;
    int rc = al_client_clear_cache(cli->client, &request, &cli->call, &arena, &response, &status);
    return rc < 0 ? al_cli_call_failed(cli, &status)
                  : al_cli_output_done(print_cleared(cli->options, response));
}

int al_cmd_cache(const struct al_options *options)
{
    struct al_cli cli;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    int code = options->cache_action == AL_CACHE_ACTION_CLEAR ? clear(&cli) : show_stats(&cli);
    al_cli_disconnect(&cli);
    return code;
}
