#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/cases.h"
#include "tests/bench/die.h"
#include "tests/bench/program.h"
#include "tests/bench/table.h"

#define WINDOW_BYTES (1 << 20) /* what is called a window that does not grow */

struct options {
    const char *server;
    const char *floor;
    const char *launcher;
    const char *folder;
    const char *only; /* NULL: everything */
    bool quick;
    bool check;
};

static struct options parse(int argc, char **argv)
{
    static const struct option longs[] = {
        {"server", required_argument, NULL, 's'},   {"floor", required_argument, NULL, 'f'},
        {"launcher", required_argument, NULL, 'l'}, {"folder", required_argument, NULL, 'd'},
        {"only", required_argument, NULL, 'o'},     {"quick", no_argument, NULL, 'q'},
        {"check", no_argument, NULL, 'c'},          {0}};
    struct options o = {0};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 's':
            o.server = optarg;
            break;
        case 'f':
            o.floor = optarg;
            break;
        case 'l':
            o.launcher = optarg;
            break;
        case 'd':
            o.folder = optarg;
            break;
        case 'o':
            o.only = optarg;
            break;
        case 'q':
            o.quick = true;
            break;
        case 'c':
            o.check = true;
            break;
        default:
            exit(2);
        }
    }
    if (!o.launcher || !o.folder || !o.server != !o.floor) {
        al_bench_die("is started by tests/bench/run");
    }
    return o;
}

static bool wanted(const struct options *o, const char *name)
{
    return !o->only || strcmp(o->only, name) == 0;
}

static void measure(struct al_bench *bench, const struct options *o)
{
    bool any = false;
    al_table_heading();
    for (size_t i = 0; i < AL_BENCH_PROGRAMS; i++) {
        if (wanted(o, al_bench_programs[i].language)) {
            al_cases_program(bench, &al_bench_programs[i]);
            any = true;
        }
    }
    static const char *const tools[] = {"bubblewrap", "firejail"};
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (bench->client && wanted(o, tools[i])) {
            al_cases_tool(bench, tools[i]);
            any = true;
        }
    }
    if (bench->client && wanted(o, "echo")) {
        al_cases_echo(bench);
        any = true;
    }
    if (bench->client && wanted(o, "stream")) {
        al_cases_stream(bench);
        any = true;
    }
    if (bench->client && wanted(o, "keys")) {
        al_cases_keys(bench);
        any = true;
    }
    if (!any) {
        al_bench_die("--only: python, javascript, typescript, bash, bubblewrap, firejail, "
                     "echo, stream or keys");
    }
}

static struct al_bench_raw connect_raw(const struct options *options, int window_bytes)
{
    return (struct al_bench_raw){al_floor_create(options->floor, window_bytes),
                                 al_floor_create(options->server, window_bytes)};
}

static void disconnect_raw(struct al_bench_raw *raw)
{
    al_floor_destroy(raw->floor);
    al_floor_destroy(raw->server);
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    struct al_bench bench = {.folder = options.folder, .quick = options.quick};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL); /* as airlockd does */
    al_direct_start(&bench.direct, options.launcher, options.folder);
    if (options.server) {
        const struct al_client_options to = {.address = options.server};
        bench.client = al_client_create(&to);
        bench.raw = connect_raw(&options, 0);
        bench.raw_fixed = connect_raw(&options, WINDOW_BYTES);
        if (!bench.client) {
            al_bench_die("out of memory");
        }
    }
    measure(&bench, &options);
    printf("\n");
    bool met = al_table_aims(bench.aims, bench.n_aims);
    al_client_destroy(bench.client);
    disconnect_raw(&bench.raw);
    disconnect_raw(&bench.raw_fixed);
    al_direct_stop(&bench.direct);
    return options.check && !met ? EXIT_FAILURE : EXIT_SUCCESS;
}
