/*
 * Runs the table of rows.c. One launcher for each set of barriers that some row wants off, and in
 * each one job that makes all attacks of that set; then every row looks up what its attack said.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/escape/prison.h"
#include "tests/escape/rows.h"
#include "tests/escape/weakened.h"

#define SETS_MAX  40
#define ROWS_MAX  800
#define NAME_SIZE 96
#define CODE_SIZE 8192

#define AHEAD_TRIES 10
#define AHEAD_US    100000

/* A launcher and what the attacks in its cells have said. */
struct set {
    struct prison_plan plan;
    const char *language;
    struct words words;
};

/* How a cell is come by: all rows must hold in each, and the weakened launcher with everything on
 * must be no different. */
struct way {
    const char *name;
    const char *language;
    bool weakened;
    bool prepared;
};

static const struct way ways[] = {
    {"", "bash", .weakened = false},
    {"/prepared", "bash", .prepared = true},
    {"/python", "python", .prepared = true},
    {"/control", "bash", .weakened = true},
};

static struct world world;
static struct set sets[SETS_MAX];
static size_t n_sets;

/* One row against one set. */
struct check {
    const struct escape_row *row;
    const struct set *set;
    bool open; /* its barriers are off in the set */
    char name[NAME_SIZE];
};

static struct check checks[ROWS_MAX];
static size_t n_checks;

static struct set *find_set(const struct way *way, uint32_t off)
{
    for (size_t i = 0; i < n_sets; i++) {
        if (sets[i].plan.weakened == way->weakened && sets[i].plan.prepared == way->prepared &&
            sets[i].language == way->language && sets[i].plan.off == off)
        {
            return &sets[i];
        }
    }
    if (n_sets == SETS_MAX) {
        abort(); /* make it larger */
    }
    sets[n_sets] =
        (struct set){.plan = {.weakened = way->weakened, .prepared = way->prepared, .off = off},
                     .language = way->language};
    return &sets[n_sets++];
}

static void add_check(const struct escape_class *c, const struct escape_row *row,
                      const struct way *way, uint32_t off)
{
    if (n_checks == ROWS_MAX) {
        abort();
    }
    struct check *check = &checks[n_checks++];
    *check = (struct check){.row = row, .set = find_set(way, off), .open = off != 0};
    snprintf(check->name, sizeof check->name, "%s/%s%s", c->name, row->attack, way->name);
}

static void list_checks(void)
{
    static const struct way without = {"/without", "bash", .weakened = true};
    for (size_t i = 0; i < n_escape_classes; i++) {
        const struct escape_class *c = &escape_classes[i];
        for (size_t k = 0; k < c->n; k++) {
            for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
                add_check(c, &c->rows[k], &ways[w], 0);
            }
            if (c->rows[k].off) {
                add_check(c, &c->rows[k], &without, c->rows[k].off);
            }
        }
    }
}

/* The attacks of a set, or what goes before them, as a command line. */
static void write_command(const struct set *set, bool before, char *ret, size_t size)
{
    size_t n = (size_t)snprintf(ret, size, "./attack");
    for (size_t i = 0; i < n_checks; i++) {
        const char *name = before ? checks[i].row->after : checks[i].row->attack;
        if (checks[i].set == set && name && n < size) {
            n += (size_t)snprintf(ret + n, size - n, " %s", name);
        }
    }
    assert_true(n < size);
}

/* Starts the job beside the one that is to come, if there is to be one. */
static bool start_neighbour(const struct set *set, const struct prison *prison,
                            struct al_launched *ret)
{
    static char command[CODE_SIZE], code[CODE_SIZE + 64];
    write_command(set, true, command, sizeof command);
    const bool wanted = strchr(command, ' ') != NULL;
    if (wanted) {
        snprintf(code, sizeof code, "%s\necho ready; sleep 100\n", command);
        const struct inmate inmate = {.language = "bash", .code = code};
        prison_start(prison, &inmate, ret);
        prison_wait_for(ret, "ready");
    }
    return wanted;
}

/* An interpreter that was started ahead of its program does not have the job's variables there. */
static const char python_text[] =
    "import os\n"
    "if b'ESCAPE_DIR' not in open('/proc/self/environ', 'rb').read(): print('ahead', flush=True)\n"
    "os.execv('./attack', '%s'.split())\n";

static void write_code(const struct set *set, char *ret, size_t size)
{
    static char command[CODE_SIZE];
    write_command(set, false, command, sizeof command);
    if (strcmp(set->language, "python") == 0) {
        snprintf(ret, size, python_text, command);
    } else {
        snprintf(ret, size, "%s\n", command);
    }
}

/* A started interpreter may not be there at once on a busy machine. */
static void run_attacks(struct set *set, const struct prison *prison)
{
    static char code[CODE_SIZE + 512];
    write_code(set, code, sizeof code);
    const struct inmate inmate = {.language = set->language, .code = code};
    const bool python = strcmp(set->language, "python") == 0;
    for (int i = 0; i < AHEAD_TRIES; i++) {
        prison_run(prison, &inmate, &set->words);
        if (!python || strstr(set->words.out, "ahead")) {
            return;
        }
        usleep(AHEAD_US);
    }
}

static void run_set(struct set *set)
{
    struct prison prison;
    struct al_launched neighbour;
    prison_open(&prison, &world, &set->plan);
    const bool has_neighbour = start_neighbour(set, &prison, &neighbour);
    run_attacks(set, &prison);
    if (has_neighbour) {
        al_launched_close(&neighbour);
    }
    prison_close(&prison);
    if (!set->words.exit.ran || set->words.exit.wait_status != 0) {
        print_error("%s, barriers off %#x: status %#x limit %d %s %s\n", set->language,
                    set->plan.off, set->words.exit.wait_status, set->words.exit.limit,
                    set->words.exit.error, set->words.err);
    }
}

static int run_sets(void **state)
{
    (void)state;
    world_open(&world);
    for (size_t i = 0; i < n_sets; i++) {
        run_set(&sets[i]);
    }
    world_close(&world);
    return 0;
}

/* What the attack said: the second word of its line. */
static const char *said_by(const struct check *check, char ret[32])
{
    char start[64];
    snprintf(start, sizeof start, "\n%s ", check->row->attack);
    const char *out = check->set->words.out;
    const char *at = strncmp(out, start + 1, strlen(start + 1)) == 0 ? out - 1 : strstr(out, start);
    snprintf(ret, 32, "nothing");
    if (at) {
        sscanf(at + strlen(start), "%31s", ret);
    }
    return ret;
}

static void test_check(void **state)
{
    const struct check *check = *state;
    const struct escape_row *row = check->row;
    char said[32];
    said_by(check, said);
    if (!check->open) {
        assert_string_equal(said, row->held);
        return;
    }
    if (row->absent && strcmp(said, row->absent) == 0) {
        print_message("this kernel itself says %s\n", said);
        skip();
    }
    assert_string_equal(said, row->open);
}

/* Else what is named python would be nothing new. */
static void test_python__was_started_ahead(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_sets; i++) {
        if (strcmp(sets[i].language, "python") == 0) {
            assert_non_null(strstr(sets[i].words.out, "ahead"));
        }
    }
}

/* The table itself: a row shows its layer, says why it cannot, or is about what is allowed. */
static void test_every_row__is_shown_or_says_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_escape_classes; i++) {
        for (size_t k = 0; k < escape_classes[i].n; k++) {
            const struct escape_row *row = &escape_classes[i].rows[k];
            bool allowed = strcmp(row->layer, "allowed") == 0;
            assert_int_equal(allowed, strcmp(row->held, "ok") == 0);
            if (!allowed && !(row->off ? row->open != NULL : row->why != NULL)) {
                fail_msg("%s", row->attack);
            }
            if (row->off && !row->why) {
                assert_string_not_equal(row->held, row->open);
            }
        }
    }
}

int main(void)
{
    static const struct CMUnitTest table[] = {
        cmocka_unit_test(test_every_row__is_shown_or_says_why),
    };
    static struct CMUnitTest tests[ROWS_MAX + 1] = {
        cmocka_unit_test(test_python__was_started_ahead)};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    /* What a launcher has that was started generously, if this may be given. */
    setrlimit(RLIMIT_RTPRIO, &(struct rlimit){.rlim_cur = 10, .rlim_max = 10});
    setrlimit(RLIMIT_NICE, &(struct rlimit){.rlim_cur = 40, .rlim_max = 40});
    list_checks();
    for (size_t i = 0; i < n_checks; i++) {
        tests[1 + i] = (struct CMUnitTest){
            .name = checks[i].name, .test_func = test_check, .initial_state = &checks[i]};
    }
    int failed = cmocka_run_group_tests_name("escape table", table, NULL, NULL);
    return failed + _cmocka_run_group_tests("escape", tests, 1 + n_checks, run_sets, NULL);
}
