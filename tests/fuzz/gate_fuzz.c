/*
 * Any bytes as a program for the egress gate. The first byte chooses language, policy and whether
 * the bytes come as the code or as a file. What is reported must lie within the source and its
 * bounds, and be fit to be shown.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/api/backend.h"
#include "backends/base/host_match.h"
#include "service/gate/gate.h"
#include "tests/fuzz/fuzz.h"

static const struct al_language languages[] = {
    {.name = "python", .version = "3", .code_file = "main.py"},
    {.name = "typescript", .version = "5", .code_file = "main.ts"},
    {.name = "bash", .version = "5", .code_file = "main.sh"},
    {.name = "other", .version = "1", .code_file = "main"},
};

static const char *const extensions[] = {"a.py", "a.tsx", "a.sh", "a.txt"};

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_host(const char *host)
{
    size_t len = strlen(host);
    require(len > 0 && len <= AL_HOST_MAX);
    for (; *host; host++) {
        require(*host > ' ' && *host <= '~');
    }
}

static void require_finding(const struct al_gate_finding *f, const struct al_job_spec *spec,
                            size_t lines)
{
    char text[600];
    require_host(f->host);
    require(f->line >= 1 && f->line <= lines);
    require(f->file == (spec->n_files > 0 ? spec->files[0].path : NULL));
    require(!f->blocks || spec->network != AL_NETWORK_UNRESTRICTED);
    require(!f->blocks || (strcmp(f->rule, "bare_name") != 0 && strcmp(f->rule, "loopback") != 0));
    al_gate_explain(f, text, sizeof text);
    require(strncmp(text, "egress to ", 10) == 0 && text[strlen(text) - 1] == ')');
}

static void require_report(const struct al_gate_report *report, const struct al_job_spec *spec,
                           size_t lines)
{
    const struct al_gate_finding *block = NULL;
    require(report->n <= AL_GATE_FINDINGS_MAX);
    for (size_t i = report->n; i-- > 0;) {
        require_finding(&report->findings[i], spec, lines);
        block = report->findings[i].blocks ? &report->findings[i] : block;
    }
    require(report->block == block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const hosts[] = {"good.com", "*.x.org:443", "10.0.0.0/8", "2001:db8::/32"};
    if (len == 0) {
        return 0;
    }
    unsigned language = data[0] & 3;
    struct al_file file = {.path = extensions[language], .mode = 0644};
    struct al_job_spec spec = {.language = &languages[language],
                               .network = 1 + (data[0] >> 2) % 3,
                               .files = &file,
                               .n_files = data[0] >> 7};
    struct al_bytes source = {.data = len > 1 ? data + 1 : NULL, .len = len - 1};
    struct al_gate_report report;
    size_t lines = 1;
    *(spec.n_files > 0 ? &file.content : &spec.code) = source;
    if (spec.network == AL_NETWORK_ALLOWLIST) {
        spec.hosts = hosts;
        spec.n_hosts = sizeof hosts / sizeof hosts[0];
    }
    for (size_t i = 1; i < len; i++) {
        lines += data[i] == '\n';
    }
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 18);
    if (arena && al_gate_scan(&spec, arena, &report) == 0) {
        require_report(&report, &spec, lines);
    } else {
        require(!arena || al_arena_is_exhausted(arena));
    }
    return 0;
}
