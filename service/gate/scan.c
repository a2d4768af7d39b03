#include "service/gate/scan.h"

#include "backends/base/host_match.h"

#define WEAK_MAX        (AL_GATE_FINDINGS_MAX / 2)
#define COMPARISONS_MAX (1u << 18)

static bool is_admitted(struct gate_scan *scan, const struct gate_sighting *s)
{
    const struct al_job_spec *spec = scan->spec;
    if (spec->network == AL_NETWORK_UNRESTRICTED) {
        return true;
    }
    scan->comparisons += spec->n_hosts;
    return spec->network == AL_NETWORK_ALLOWLIST && scan->comparisons <= COMPARISONS_MAX &&
           al_host_match_any(spec->hosts, spec->n_hosts, s->host, s->port ?: s->implied_port);
}

static const char *rule_name(const struct gate_sighting *s)
{
    static const char *const names[] = {
        [GATE_URL] = "url",
        [GATE_ADDRESS] = "address",
        [GATE_HOST_PORT] = "host_port",
        [GATE_BARE_NAME] = "bare_name",
    };
    return s->loopback ? "loopback" : names[s->rule];
}

/* Where the next finding goes; NULL when there is no room for this one. */
static struct al_gate_finding *make_room(struct gate_scan *scan, bool weak, bool blocks)
{
    if (!scan->findings) {
        scan->findings =
            al_arena_alloc_array(scan->arena, AL_GATE_FINDINGS_MAX, sizeof *scan->findings);
        scan->out_of_memory = !scan->findings;
    }
    if (scan->out_of_memory) {
        return NULL;
    }
    if (scan->n < AL_GATE_FINDINGS_MAX && !(weak && scan->n_weak == WEAK_MAX)) {
        scan->n_weak += weak;
        return &scan->findings[scan->n++];
    }
    scan->truncated = true;
    return blocks && !scan->block ? &scan->findings[AL_GATE_FINDINGS_MAX - 1] : NULL;
}

void gate_report(struct gate_scan *scan, const struct gate_sighting *s)
{
    bool weak = s->rule == GATE_BARE_NAME && !s->loopback;
    bool blocks = !weak && !s->loopback && !is_admitted(scan, s);
    struct al_gate_finding *finding = make_room(scan, weak, blocks);
    const char *host = finding ? al_arena_strdup(scan->arena, s->host) : NULL;
    if (!host) {
        scan->out_of_memory |= finding != NULL;
        return;
    }
    *finding = (struct al_gate_finding){.host = host,
                                        .port = s->port,
                                        .file = scan->file,
                                        .line = s->line,
                                        .rule = rule_name(s),
                                        .blocks = blocks};
    if (blocks && !scan->block) {
        scan->block = finding;
    }
}
