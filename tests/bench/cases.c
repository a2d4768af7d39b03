#include "tests/bench/cases.h"

#include <stdio.h>
#include <string.h>

#include "tests/bench/contest.h"
#include "tests/bench/phases.h"
#include "tests/bench/plain.h"
#include "tests/bench/rpc.h"
#include "tests/bench/table.h"

#define STREAM_BYTES ((size_t)256 << 20)
#define PHASE_RUNS   50
#define PAUSE_MS     20

static double ratio(const struct al_contestant *who, const struct al_contestant *base)
{
    return (double)al_contestant_percentile(who, 0.5) / (double)al_contestant_percentile(base, 0.5);
}

/* Runs the contest and prints a row for each; the first is the yardstick of the others. */
static void run(const struct al_bench *bench, struct al_contest contest, struct al_contestant *who,
                size_t n)
{
    unsigned rounds = contest.rounds;
    contest.rounds = !bench->quick ? rounds : rounds < 8 ? 2 : rounds / 4;
    al_contest_run(&contest, who, n);
    for (size_t i = 0; i < n; i++) {
        al_table_row(&who[i], contest.threads, i > 0 ? &who[0] : NULL);
    }
}

static void finish(struct al_contestant *who, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        al_contestant_finish(&who[i]);
    }
}

/* --- interpreters --- */

/* Some 200 runs of the quick ones and 60 to 100 of node, which takes ten times as long as bash. */
static struct al_contest contest_for(unsigned threads, bool is_slow)
{
    struct al_contest contest = {.threads = threads, .turn = threads == 1 ? 1 : 4 * threads};
    contest.rounds = threads == 1 ? (is_slow ? 60 : 200) : (is_slow ? 96 : 192) / contest.turn;
    if (contest.rounds < 2) {
        contest.rounds = 2;
    }
    return contest;
}

static void run_program_with(struct al_bench *bench, const struct al_bench_program *program,
                             struct al_plain *plain, unsigned threads, unsigned pause_ms)
{
    char names[3][64];
    struct al_direct direct = {.env = &bench->direct, .program = program};
    struct al_bench_rpc rpc = {.client = bench->client,
                               .backend = "native",
                               .language = program->language,
                               .code = program->code,
                               .output = AL_BENCH_OUTPUT};
    struct al_contestant who[] = {
        {.name = names[0], .once = al_plain_run, .arg = plain},
        {.name = names[1], .once = al_direct_run, .arg = &direct},
        {.name = names[2], .once = al_bench_rpc_run, .arg = &rpc},
    };
    snprintf(names[0], sizeof names[0], "%s: plain spawn", program->language);
    snprintf(names[1], sizeof names[1], "%s: native, no RPC", program->language);
    snprintf(names[2], sizeof names[2], "%s: native Run", program->language);
    size_t n = bench->client ? 3 : 2;
    struct al_contest contest = contest_for(threads, strstr(program->language, "script") != NULL);
    contest.pause_ms = pause_ms;
    run(bench, contest, who, n);
    if (threads == 1 && n == 3 && strcmp(program->language, "python") == 0) {
        bench->python_ratio = ratio(&who[2], &who[0]);
    }
    finish(who, n);
}

void al_cases_program(struct al_bench *bench, const struct al_bench_program *program)
{
    static const unsigned threads[] = {1, 4, 16};
    struct al_plain *plain = al_plain_create(program, bench->folder);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        if (threads[i] == 1) {
            run_program_with(bench, program, plain, 1, PAUSE_MS);
        }
        run_program_with(bench, program, plain, threads[i], 0);
    }
    al_plain_destroy(plain);
    if (!bench->client) {
        struct al_direct direct = {.env = &bench->direct, .program = program};
        al_phases_print(&direct, PHASE_RUNS);
    }
}

/* --- gRPC --- */

static void run_echo_with(struct al_bench *bench, unsigned threads)
{
    struct al_bench_rpc rpc = {.client = bench->client,
                               .backend = "echo",
                               .language = "python",
                               .code = "0123456789abcdef",
                               .output = "0123456789abcdef"};
    struct al_bench_rpc cached = rpc;
    cached.cached = true;
    struct al_contestant who[] = {
        {.name = "unary floor, 16 bytes", .once = al_floor_echo, .arg = bench->floor},
        {.name = "echo Run, 16 bytes", .once = al_bench_rpc_run, .arg = &rpc},
        {.name = "cached Run, 16 bytes", .once = al_bench_rpc_run, .arg = &cached},
    };
    struct al_contest contest = {.threads = threads, .rounds = 40, .turn = 50 * threads};
    run(bench, contest, who, 3);
    if (threads == 1) {
        bench->echo_ratio = ratio(&who[1], &who[0]);
        bench->cached_ratio = ratio(&who[2], &who[0]);
    }
    finish(who, 3);
}

void al_cases_echo(struct al_bench *bench)
{
    run_echo_with(bench, 1);
    run_echo_with(bench, 16);
}

static void stream_floor(void *arg, unsigned worker)
{
    (void)worker;
    al_floor_stream(arg, STREAM_BYTES);
}

void al_cases_stream(struct al_bench *bench)
{
    struct al_bench_rpc head = {.client = bench->client,
                                .backend = "native",
                                .language = "bash",
                                .code = "head -c 256M /dev/zero\n",
                                .output_bytes = STREAM_BYTES,
                                .raw = bench->server};
    struct al_bench_rpc dd = head;
    dd.code = "dd if=/dev/zero bs=256K count=1024 status=none\n";
    struct al_contestant who[] = {
        {.name = "streaming floor, 256 MiB", .once = stream_floor, .arg = bench->floor},
        {.name = "native Stream of head -c 256M", .once = al_bench_rpc_stream_raw, .arg = &head},
        {.name = "native Stream of dd bs=256K", .once = al_bench_rpc_stream_raw, .arg = &dd},
        {.name = "head, through //client", .once = al_bench_rpc_stream, .arg = &head},
    };
    const size_t n = sizeof who / sizeof who[0];
    struct al_contest contest = {.threads = 1, .rounds = bench->quick ? 3 : 9, .turn = 1};
    al_contest_run(&contest, who, n);
    for (size_t i = 0; i < n; i++) {
        al_table_row_bytes(&who[i], STREAM_BYTES, i > 0 ? &who[0] : NULL);
    }
    bench->stream_ratio = 1 / ratio(&who[1], &who[0]);
    finish(who, n);
}
