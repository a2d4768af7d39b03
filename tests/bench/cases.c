#include "tests/bench/cases.h"

#include <stdio.h>
#include <string.h>

#include "tests/bench/contest.h"
#include "tests/bench/keys.h"
#include "tests/bench/phases.h"
#include "tests/bench/pipe.h"
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

/* `limit`: at most; negative: at least its opposite. */
static void add_aim(struct al_bench *bench, const char *text, double limit, double value)
{
    if (bench->n_aims < AL_BENCH_AIMS_MAX) {
        struct al_aim *aim = &bench->aims[bench->n_aims++];
        *aim = (struct al_aim){
            .limit = limit < 0 ? -limit : limit, .at_least = limit < 0, .ratio = value};
        snprintf(aim->text, sizeof aim->text, "%s", text);
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

/* Who takes part for a language; the yardstick first. */
struct field {
    char names[4][64];
    struct al_direct direct;
    struct al_bench_rpc run, own;
    struct al_contestant who[4];
    size_t n;
};

static void enter(struct field *field, const char *language, const char *what,
                  void (*once)(void *, unsigned), void *arg)
{
    char *name = field->names[field->n];
    snprintf(name, sizeof field->names[0], "%s: %s", language, what);
    field->who[field->n++] = (struct al_contestant){.name = name, .once = once, .arg = arg};
}

static bool is_prestarted(const char *language)
{
    return strcmp(language, "typescript") != 0;
}

static void set_up(struct field *field, struct al_bench *bench,
                   const struct al_bench_program *program, struct al_plain *plain)
{
    const char *language = program->language;
    *field = (struct field){.direct = {.env = &bench->direct, .program = program},
                            .run = {.client = bench->client,
                                    .backend = "native",
                                    .language = language,
                                    .code = program->code,
                                    .output = AL_BENCH_OUTPUT}};
    field->own = field->run;
    field->own.own_interpreter = true;
    enter(field, language, "plain spawn", al_plain_run, plain);
    if (!bench->client) {
        enter(field, language, "native, no RPC", al_direct_run, &field->direct);
        return;
    }
    enter(field, language, "Run", al_bench_rpc_run, &field->run);
    if (is_prestarted(language)) {
        enter(field, language, "Run, own interpreter", al_bench_rpc_run, &field->own);
    }
}

static void aim_for(struct al_bench *bench, const char *language, const char *only,
                    const char *text, double limit, double value)
{
    if (bench->client && strcmp(language, only) == 0) {
        add_aim(bench, text, limit, value);
    }
}

/* With time to make a cell between two runs. */
static void run_paced(struct al_bench *bench, const struct al_bench_program *program,
                      struct al_plain *plain)
{
    struct field f;
    const char *language = program->language;
    struct al_contest contest = contest_for(1, strstr(language, "script") != NULL);
    contest.pause_ms = PAUSE_MS;
    set_up(&f, bench, program, plain);
    run(bench, contest, f.who, f.n);
    aim_for(bench, language, "python", "python, interpreter started ahead / plain spawn, paced",
            0.4, ratio(&f.who[1], &f.who[0]));
    aim_for(bench, language, "python", "python, prepared cell / plain spawn, paced", 1.2,
            ratio(&f.who[f.n - 1], &f.who[0]));
    aim_for(bench, language, "bash", "bash / plain spawn, paced", 1.5, ratio(&f.who[1], &f.who[0]));
    finish(f.who, f.n);
}

/* The tail beside the median. */
static double spread(const struct al_contestant *who)
{
    return (double)al_contestant_percentile(who, 0.99) / (double)al_contestant_percentile(who, 0.5);
}

static void run_saturated(struct al_bench *bench, const struct al_bench_program *program,
                          struct al_plain *plain, unsigned threads)
{
    struct field f;
    const char *language = program->language;
    set_up(&f, bench, program, plain);
    run(bench, contest_for(threads, strstr(language, "script") != NULL), f.who, f.n);
    if (threads == 4) {
        aim_for(bench, language, "python", "python: p99/p50 of Run / that of plain spawn, at 4",
                1.5, spread(&f.who[f.n - 1]) / spread(&f.who[0]));
        aim_for(bench, language, "python", "python, runs a second / plain spawn's, at 4", -0.75,
                al_contestant_per_second(&f.who[f.n - 1]) / al_contestant_per_second(&f.who[0]));
    }
    finish(f.who, f.n);
}

void al_cases_program(struct al_bench *bench, const struct al_bench_program *program)
{
    static const unsigned threads[] = {1, 4, 16};
    struct al_plain *plain = al_plain_create(program, bench->folder);
    run_paced(bench, program, plain);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        run_saturated(bench, program, plain, threads[i]);
    }
    al_plain_destroy(plain);
    if (!bench->client) {
        struct al_direct direct = {.env = &bench->direct, .program = program};
        al_phases_print(&direct, PHASE_RUNS);
    }
}

/* --- tools that start programs --- */

/* As near to what the launcher has them do as a command line of one's own comes: the same
 * namespaces, the system read-only, no capabilities. As root, without a user namespace (firejail)
 * and limits: less than a job gets. */
static const char *const bare_bubblewrap[] = {"/usr/bin/bwrap",
                                              "--unshare-user",
                                              "--unshare-pid",
                                              "--unshare-ipc",
                                              "--unshare-uts",
                                              "--unshare-net",
                                              "--unshare-cgroup",
                                              "--die-with-parent",
                                              "--new-session",
                                              "--cap-drop",
                                              "ALL",
                                              "--hostname",
                                              "sandbox",
                                              "--ro-bind",
                                              "/",
                                              "/",
                                              "--dev",
                                              "/dev",
                                              "--proc",
                                              "/proc",
                                              "--tmpfs",
                                              "/tmp",
                                              "--bind",
                                              "{dir}",
                                              "{dir}",
                                              "--",
                                              NULL};
static const char *const bare_firejail[] = {
    "/usr/bin/firejail",        "--quiet",      "--noprofile",     "--deterministic-exit-code",
    "--deterministic-shutdown", "--net=none",   "--ipc-namespace", "--hostname=sandbox",
    "--caps.drop=all",          "--nonewprivs", "--private-tmp",   NULL};

static void run_tool(struct al_bench *bench, const char *backend,
                     const struct al_bench_program *program, struct al_plain *bare,
                     unsigned threads)
{
    char names[2][64], aim[96];
    struct al_bench_rpc rpc = {.client = bench->client,
                               .backend = backend,
                               .language = program->language,
                               .code = program->code,
                               .output = AL_BENCH_OUTPUT};
    struct al_contestant who[] = {{.name = names[0], .once = al_plain_run, .arg = bare},
                                  {.name = names[1], .once = al_bench_rpc_run, .arg = &rpc}};
    snprintf(names[0], sizeof names[0], "%s: bare %s", program->language, backend);
    snprintf(names[1], sizeof names[1], "%s: Run by %s", program->language, backend);
    snprintf(aim, sizeof aim, "%s, Run by %s / bare %s, at %u", program->language, backend, backend,
             threads);
    run(bench, contest_for(threads, strcmp(backend, "firejail") == 0), who, 2);
    add_aim(bench, aim, 1.3, ratio(&who[1], &who[0]));
    finish(who, 2);
}

void al_cases_tool(struct al_bench *bench, const char *backend)
{
    const bool firejail = strcmp(backend, "firejail") == 0;
    for (size_t i = 0; i < AL_BENCH_PROGRAMS; i++) {
        const struct al_bench_program *program = &al_bench_programs[i];
        if (strcmp(program->language, "python") != 0 && strcmp(program->language, "bash") != 0) {
            continue;
        }
        struct al_plain *bare =
            al_plain_create_in(program, bench->folder, firejail ? bare_firejail : bare_bubblewrap);
        run_tool(bench, backend, program, bare, 1);
        run_tool(bench, backend, program, bare, 4);
        al_plain_destroy(bare);
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
        {.name = "unary floor, 16 bytes", .once = al_floor_echo, .arg = bench->raw.floor},
        {.name = "echo Run, 16 bytes", .once = al_bench_rpc_run, .arg = &rpc},
        {.name = "cached Run, 16 bytes", .once = al_bench_rpc_run, .arg = &cached},
    };
    struct al_contest contest = {.threads = threads, .rounds = 40, .turn = 50 * threads};
    run(bench, contest, who, 3);
    if (threads == 1) {
        add_aim(bench, "echo Run with its records / unary floor, at 1", 2, ratio(&who[1], &who[0]));
        add_aim(bench, "cached Run / unary floor, at 1", 2, ratio(&who[2], &who[0]));
    }
    finish(who, 3);
}

void al_cases_echo(struct al_bench *bench)
{
    run_echo_with(bench, 1);
    run_echo_with(bench, 16);
}

void al_cases_keys(struct al_bench *bench)
{
    struct al_bench_keys *kernel = al_bench_keys_create(
        bench->client, "stty -icanon echo; printf ready; exec cat >/dev/null\n");
    struct al_bench_keys *program =
        al_bench_keys_create(bench->client, "stty raw -echo; printf ready; exec cat\n");
    struct al_contestant who[] = {
        {.name = "unary floor, 16 bytes", .once = al_floor_echo, .arg = bench->raw.floor},
        {.name = "key stroke, echoed by the terminal", .once = al_bench_keys_type, .arg = kernel},
        {.name = "key stroke, echoed by a program", .once = al_bench_keys_type, .arg = program},
    };
    struct al_contest contest = {.threads = 1, .rounds = 40, .turn = 50};
    run(bench, contest, who, 3);
    add_aim(bench, "key stroke, echoed by the terminal / unary floor", 3, ratio(&who[1], &who[0]));
    add_aim(bench, "key stroke, echoed by a program / unary floor", 3, ratio(&who[2], &who[0]));
    al_bench_keys_destroy(kernel);
    al_bench_keys_destroy(program);
    finish(who, 3);
}

static void stream_floor(void *arg, unsigned worker)
{
    (void)worker;
    al_floor_stream(arg, STREAM_BYTES);
}

static void stream_by(struct al_bench *bench, const struct al_bench_raw *raw, const char *window)
{
    struct al_bench_rpc head = {.client = bench->client,
                                .backend = "native",
                                .language = "bash",
                                .code = "head -c 256M /dev/zero\n",
                                .output_bytes = STREAM_BYTES,
                                .raw = raw->server};
    struct al_bench_rpc dd = head;
    dd.code = "dd if=/dev/zero bs=256K count=1024 status=none\n";
    struct al_bench_rpc python = head;
    python.language = "python";
    python.code =
        "import os\nblock = bytes(1 << 20)\nfor _ in range(256):\n    os.write(1, block)\n";
    struct al_bench_pipe head_pipe = {raw->floor, head.code, STREAM_BYTES};
    struct al_bench_pipe dd_pipe = {raw->floor, dd.code, STREAM_BYTES};
    struct al_contestant who[] = {
        {.name = "streaming floor, 256 MiB", .once = stream_floor, .arg = raw->floor},
        {.name = "native Stream of head -c 256M", .once = al_bench_rpc_stream, .arg = &head},
        {.name = "native Stream of dd bs=256K", .once = al_bench_rpc_stream, .arg = &dd},
        {.name = "native Stream of python bs=1M", .once = al_bench_rpc_stream, .arg = &python},
        {.name = "floor, and beside it head's pipe",
         .once = al_bench_pipe_and_floor,
         .arg = &head_pipe},
        {.name = "floor, and beside it dd's pipe",
         .once = al_bench_pipe_and_floor,
         .arg = &dd_pipe},
    };
    const size_t n = sizeof who / sizeof who[0];
    struct al_contest contest = {.threads = 1, .rounds = bench->quick ? 3 : 9, .turn = 1};
    al_contest_run(&contest, who, n);
    printf("\nthe client's window %s:\n", window);
    for (size_t i = 0; i < n; i++) {
        al_table_row_bytes(&who[i], STREAM_BYTES, i > 0 ? &who[0] : NULL);
    }
    static const char *const programs[] = {"head", "dd", "python"};
    for (size_t i = 0; i < 3; i++) {
        char text[sizeof bench->aims[0].text];
        (void)snprintf(text, sizeof text, "native Stream of %s / floor, window %s", programs[i],
                       window);
        add_aim(bench, text, -0.5, 1 / ratio(&who[1 + i], &who[0]));
    }
    finish(who, n);
}

void al_cases_stream(struct al_bench *bench)
{
    stream_by(bench, &bench->raw, "grows");
    stream_by(bench, &bench->raw_fixed, "is 1 MiB");
}
