/*
 * The egress gate over 1 MiB of Python, as a ratio to OpenSSL's SHA-256 of the same bytes: medians
 * of runs that take turns. Prints "gate MS sha256 MS ratio R".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "backends/api/backend.h"
#include "backends/base/clock.h"
#include "service/gate/gate.h"

#define BYTES (1u << 20)
#define RUNS  101

static const char piece[] =
    "import argparse\nimport json\nfrom pathlib import Path\n\n\n"
    "class Record:\n"
    "    \"\"\"One line of the report: a name, its count, and where it was seen.\n\n"
    "    Counts never go down; what is missing counts as zero.\n    \"\"\"\n\n"
    "    def __init__(self, name, count=0, places=None):\n"
    "        self.name = name  # as it was written, not folded\n"
    "        self.count = count\n"
    "        self.places = dict(places or {})\n\n"
    "    def add(self, path, line):\n"
    "        key = f\"{path}:{line}\"\n"
    "        self.places[key] = self.places.get(key, 0) + 1\n"
    "        if self.count > 10 and not path.endswith(('.py', '.txt')):\n"
    "            raise ValueError('too many of %r in %s' % (self.name, path))\n"
    "        return {'name': self.name, 'count': self.count + 1, \"when\": \"12:30\"}\n\n\n"
    "def main():\n"
    "    parser = argparse.ArgumentParser(description='Counts words. See the manual.')\n"
    "    parser.add_argument('--limit', type=int, default=100, help='at most this many')\n"
    "    args = parser.parse_args()\n"
    "    data = json.loads(Path(\"data/input.json\").read_text(encoding=\"utf-8\"))\n"
    "    for row in sorted(data, key=lambda r: (-r['count'], r[\"name\"]))[: args.limit]:\n"
    "        print(\"{:<20} {:>6}\\n\".format(row['name'], row['count']), end='')\n\n\n";

static uint8_t code[BYTES];

static void fail(const char *what)
{
    (void)fprintf(stderr, "gate_bench: %s\n", what);
    exit(1);
}

static double run_gate(const struct al_job_spec *spec)
{
    al_auto_arena struct al_arena *arena = al_arena_create(BYTES);
    struct al_gate_report report;
    int64_t from_ns = al_now_ns();
    if (!arena || al_gate_scan(spec, arena, &report) < 0 || report.block) {
        fail("the scan failed, or blocks");
    }
    return (double)(al_now_ns() - from_ns) / 1e6;
}

static double run_sha256(const EVP_MD *sha256)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    int64_t from_ns = al_now_ns();
    if (EVP_Digest(code, sizeof code, digest, NULL, sha256, NULL) != 1) {
        fail("SHA-256 failed");
    }
    return (double)(al_now_ns() - from_ns) / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *ms)
{
    qsort(ms, RUNS, sizeof *ms, compare);
    return ms[RUNS / 2];
}

int main(void)
{
    static const struct al_language python = {
        .name = "python", .version = "3", .code_file = "main.py"};
    static double gate_ms[RUNS], sha256_ms[RUNS];
    EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    const struct al_job_spec spec = {.language = &python,
                                     .code = {.data = code, .len = sizeof code},
                                     .network = AL_NETWORK_NONE};
    if (!sha256) {
        fail("no SHA-256");
    }
    for (size_t i = 0; i < sizeof code; i++) {
        code[i] = (uint8_t)piece[i % (sizeof piece - 1)];
    }
    for (size_t i = 0; i < RUNS; i++) {
        gate_ms[i] = run_gate(&spec);
        sha256_ms[i] = run_sha256(sha256);
    }
    double gate = median(gate_ms), sha = median(sha256_ms);
    printf("gate %.3f ms, SHA-256 %.3f ms, ratio %.2f (1 MiB of Python, medians of %d)\n", gate,
           sha, gate / sha, RUNS);
    EVP_MD_free(sha256);
    return 0;
}
