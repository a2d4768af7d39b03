/*
 * What a program leaves, on every backend that collects artifacts. Each row says what its program
 * does, which globs are asked for, and what must come back: a line for each artifact (path, mode,
 * content or its length) and one for those that were omitted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/rows.h"
#include "tests/support/runner.h"

#define GLOBS_MAX   4
#define SHOWN_BYTES 40 /* longer contents are shown as their length */

struct row {
    const char *name;
    const char *language;
    const char *code;
    const char *globs[GLOBS_MAX];
    void (*change)(struct al_job_spec *spec); /* may be NULL */
    struct al_test_caller caller;
    const char *artifacts;                         /* NULL: see check */
    void (*check)(const struct al_result *result); /* may be NULL */
    enum al_status status;                         /* 0: succeeded */
    enum al_limit limit;
    int within_ms;     /* 0: not looked at */
    unsigned backends; /* 0: all cells */
};

static void wall_500ms(struct al_job_spec *s)
{
    s->quotas.wall_ms = 500;
}

static void cpu_200ms(struct al_job_spec *s)
{
    s->quotas.cpu_ms = 200;
}

static void output_1000(struct al_job_spec *s)
{
    s->quotas.output_bytes = 1000;
}

static void bytes_10(struct al_job_spec *s)
{
    s->quotas.artifact_bytes = 10;
}

static void memory_64(struct al_job_spec *s)
{
    s->quotas.memory_mb = 64;
    s->quotas.file_size_mb = 100;
    s->quotas.disk_mb = 100;
}

static void pids_8(struct al_job_spec *s)
{
    s->quotas.pids = 8;
}

static void open_files_8(struct al_job_spec *s)
{
    s->quotas.open_files = 8;
}

static void file_size_4g(struct al_job_spec *s)
{
    s->quotas.file_size_mb = 4096;
}

static void with_files(struct al_job_spec *s)
{
    static const struct al_file files[] = {
        {"given/data", {(const uint8_t *)"in", 2}, 0640},
        {"tool.sh", {(const uint8_t *)"#!/bin/sh\n", 10}, 0755},
    };
    s->files = files;
    s->n_files = 2;
}

/* Each costs as much as a glob can, over each of the names below. */
static void hostile_globs(struct al_job_spec *s)
{
    static char glob[300];
    static const char *globs[AL_ARTIFACT_GLOBS_MAX];
    for (size_t i = 0; i < 254; i += 2) {
        memcpy(glob + i, "*a", 2);
    }
    memcpy(glob + 254, "b", 2);
    for (size_t i = 0; i < AL_ARTIFACT_GLOBS_MAX; i++) {
        globs[i] = glob;
    }
    s->artifacts = globs;
    s->n_artifacts = AL_ARTIFACT_GLOBS_MAX;
    s->quotas.disk_mb = 256; /* as many names as take a fast machine long, too */
}

static void workdir_below(struct al_job_spec *s)
{
    s->workdir = "/sandbox/deep/er";
}

static void workdir_tmp(struct al_job_spec *s)
{
    s->workdir = "/tmp";
}

static void check_256_of_300(const struct al_result *result)
{
    const struct al_artifacts *a = &result->artifacts;
    assert_int_equal(a->n, AL_ARTIFACTS_MAX);
    assert_int_equal(a->omitted, 300 - AL_ARTIFACTS_MAX);
    assert_string_equal(a->items[0].path, "f000");
    assert_string_equal(a->items[255].path, "f255");
}

/* It takes two seconds, which are not the program's. */
static void check_not_charged(const struct al_result *result)
{
    assert_true(result->cpu_us < 1500000);
}

/* Under one name each, which stayed while it was found, opened and read. */
static void check_200(const struct al_result *result)
{
    const struct al_artifacts *a = &result->artifacts;
    assert_int_equal(a->n, 200);
    assert_int_equal(a->omitted, 0);
}

static void check_one_log(const struct al_result *result)
{
    const struct al_artifacts *a = &result->artifacts;
    assert_int_equal(a->n, 1);
    assert_int_equal(a->omitted, 0);
    assert_true(a->items[0].len > 0);
    assert_false(a->items[0].truncated);
}

#define LEFTOVERS(what) what "\nfor i in 1 2 3 4 5; do [ -s log ] || sleep 0.1; done"

static const struct row rows[] = {
    {"one_file", "bash", "echo hi > out.txt", {"out.txt"}, .artifacts = "out.txt 644 hi\n\n"},
    {"nothing_matches", "bash", "echo hi > out.txt", {"*.png"}, .artifacts = ""},
    {"not_asked", "bash", "echo hi > out.txt", {NULL}, .artifacts = ""},
    {"python", "python", "open('a','wb').write(b'\\0\\xff')", {"a"}, .artifacts = "a 644 #2\n"},
    {"javascript",
     "javascript",
     "require('fs').writeFileSync('a', 'js')",
     {"a"},
     .artifacts = "a 644 js\n"},
    {"typescript",
     "typescript",
     "import * as fs from 'fs'; const t: string = 'ts'; fs.writeFileSync('a', t)",
     {"a", "*.ts"},
     .artifacts = "a 644 ts\nmain.ts 644 #74\n"},
    {"empty_file", "bash", ": > a", {"a"}, .artifacts = "a 644 \n"},
    {"modes_are_kept_less_the_special_bits",
     "bash",
     "echo x > a; echo y > b; chmod 4751 a; chmod 400 b",
     {"?"},
     .artifacts = "a 751 x\n\nb 400 y\n\n"},
    {"any_depth",
     "bash",
     "mkdir -p o/a/b; for i in o/1 o/a/2 o/a/b/3 4; do printf $i > $i; done",
     {"o/**"},
     .artifacts = "o/1 644 o/1\no/a/2 644 o/a/2\no/a/b/3 644 o/a/b/3\n"},
    {"star_stays_in_its_folder",
     "bash",
     "mkdir o; printf 1 > o/1; printf 2 > 2",
     {"*[0-9]"},
     .artifacts = "2 644 2\n"},
    {"sorted_by_bytes_of_the_path",
     "bash",
     "mkdir a; for i in a/x a-x a.x B; do printf 1 > $i; done",
     {"[aB]*", "a/*"},
     .artifacts = "B 644 1\na-x 644 1\na.x 644 1\na/x 644 1\n"},
    {"each_file_once", "bash", "printf 1 > a", {"a", "*a", "**/a"}, .artifacts = "a 644 1\n"},
    {"hidden_only_by_a_dot",
     "bash",
     "mkdir .d; printf 1 > .d/a; printf 2 > .b; printf 3 > c",
     {"**", ".b"},
     .artifacts = ".b 644 2\nc 644 3\nmain.sh 644 #54\n"},
    {"code_and_given_files_are_files_too",
     "bash",
     ":",
     {"**"},
     with_files,
     .artifacts = "given/data 640 in\nmain.sh 644 :\ntool.sh 755 #!/bin/sh\n\n"},
    {"nothing_of_an_interpreters_start",
     "python",
     "1",
     {"**", "**/.*"},
     .artifacts = "main.py 644 1\n"},
    {"nothing_of_nodes_start", "javascript", "1", {"**", "**/.*"}, .artifacts = "main.js 644 1\n"},
    {"given_file_as_it_is_at_the_end",
     "bash",
     "printf out >> given/data; rm tool.sh",
     {"given/*", "tool.sh"},
     with_files,
     .artifacts = "given/data 640 inout\n"},

    /* not files */
    {"link_to_a_file",
     "bash",
     "ln -s /etc/passwd l; printf x > x; ln -s x m",
     {"?"},
     .artifacts = "x 644 x\nomitted 2\n"},
    {"link_to_a_folder",
     "bash",
     "ln -s /etc d; mkdir e; printf x > e/x; ln -s e f",
     {"?/*"},
     .artifacts = "e/x 644 x\n"},
    {"link_that_leads_round",
     "bash",
     "mkdir d; ln -s . d/d; printf x > d/x",
     {"**/x"},
     .artifacts = "d/x 644 x\n"},
    {"fifo_and_socket",
     "python",
     "import os, socket\nos.mkfifo('f')\nsocket.socket(socket.AF_UNIX).bind('s')",
     {"?"},
     .artifacts = "omitted 2\n",
     .within_ms = 10000},
    {"device_cannot_be_made",
     "bash",
     "mknod d c 1 3 2>/dev/null || mknod d b 7 0 2>/dev/null || :",
     {"d"},
     .artifacts = ""},
    {"folder_is_no_artifact", "bash", "mkdir d", {"d"}, .artifacts = ""},
    {"hard_links_are_files",
     "bash",
     "printf x > a; ln a b",
     {"?"},
     .artifacts = "a 644 x\nb 644 x\n"},
    {"no_hard_link_to_the_host",
     "bash",
     "for f in /etc/passwd /usr/bin/env /proc/self/environ /proc/self/exe /proc/self/fd/0; do "
     "ln -L $f h 2>/dev/null; ln $f i 2>/dev/null; done; :",
     {"[hi]"},
     .artifacts = ""},
    {"unreadable_file",
     "bash",
     "printf x > a; printf y > b; chmod 0 a",
     {"?"},
     .artifacts = "b 644 y\nomitted 1\n"},
    {"unreadable_folder",
     "bash",
     "mkdir d; printf x > d/x; printf y > y; chmod 0 d",
     {"**/[xy]"},
     .artifacts = "y 644 y\nomitted 1\n"},
    {"names_that_cannot_be_shown",
     "bash",
     "printf 1 > $'a\\xff'; printf 2 > $'a\\nb'; printf 3 > $'a\\x7f'; printf 4 > aü",
     {"a*"},
     .artifacts = "aü 644 4\nomitted 3\n"},
    {"name_of_255_bytes",
     "python",
     "open('x' * 255, 'w').write('1')",
     {"xx*"},
     .artifacts =
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "x"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "x"
         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx 644 1\n"},
    {"workdir_is_a_link_now",
     "bash",
     "cd ..; mv er old; printf x > old/x; ln -s old er",
     {"x"},
     workdir_below,
     .artifacts = "omitted 1\n"},
    {"workdirs_parent_is_a_link_now",
     "bash",
     "cd ../..; printf x > deep/er/x; mv deep old; ln -s old deep",
     {"x"},
     workdir_below,
     .artifacts = "omitted 1\n"},
    {"workdir_is_gone", "bash", "cd ..; rm -r er", {"**"}, workdir_below, .artifacts = ""},
    {"workdir_below",
     "bash",
     "printf x > x; printf y > ../y",
     {"**/?", "y"},
     workdir_below,
     .artifacts = "x 644 x\n"},
    {"workdir_tmp", "bash", "printf x > x", {"x"}, workdir_tmp, .artifacts = "x 644 x\n"},

    /* bounds */
    {"cut_where_bytes_end",
     "bash",
     "printf 1234567 > a; printf 12345 > b; printf 1 > c; : > d",
     {"?"},
     bytes_10,
     .artifacts = "a 644 1234567\nb 644 123 cut\nd 644 \nomitted 1\n"},
    {"exactly_all_bytes",
     "bash",
     "printf 1234567890 > a",
     {"a"},
     bytes_10,
     .artifacts = "a 644 1234567890\n"},
    {"sparse",
     "bash",
     "truncate -s 4G a; printf x > b",
     {"?"},
     file_size_4g,
     .artifacts = "a 644 #1048576 cut\nomitted 1\n",
     .within_ms = 10000},
    {"number", "bash", "for i in {000..299}; do : > f$i; done", {"f*"}, .check = check_256_of_300},
    {"too_deep",
     "python",
     "import os\nfor i in range(3000):\n os.mkdir('d'); os.chdir('d')\n"
     " if i % 50 == 49: open('x', 'w').close()",
     {"**/x"},
     .artifacts = "d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/"
                  "d/d/d/d/d/"
                  "d/d/d/d/d/x 644 \nomitted 1\n",
     .within_ms = 10000},
    {"folder_of_many",
     "python",
     "for i in range(15000): open(f'x{i}', 'w').close()\nopen('z', 'w').write('z')",
     {"**/z"},
     .artifacts = "z 644 z\n",
     .within_ms = 10000},
    {"globs_that_take_long",
     "python",
     "for i in range(32000): open(f'{i:05}' + 'a' * 250, 'w').close()",
     {NULL},
     hostile_globs,
     .artifacts = "omitted 1\n",
     .check = check_not_charged,
     .within_ms = 20000},
    {"few_open_files_are_the_programs",
     "bash",
     "mkdir -p {a,b}/c/d/e/f/g/h/i; : > a/c/d/e/f/g/h/i/x",
     {"**/x"},
     open_files_8,
     .artifacts = "a/c/d/e/f/g/h/i/x 644 \n"},
    {"memory_full_of_files",
     "bash",
     "printf small > s; head -c 80000000 /dev/zero > big",
     {"s"},
     memory_64,
     .artifacts = "s 644 small\n",
     .status = AL_STATUS_FAILED,
     .limit = AL_LIMIT_MEMORY},

    /* how the program ends */
    {"failed",
     "bash",
     "printf x > x; exit 7",
     {"x"},
     .artifacts = "x 644 x\n",
     .status = AL_STATUS_FAILED},
    {"died_of_a_signal",
     "bash",
     "printf x > x; kill -9 $$",
     {"x"},
     .artifacts = "x 644 x\n",
     .status = AL_STATUS_FAILED},
    {"compile_failed",
     "typescript",
     "const x: = 1",
     {"**"},
     .artifacts = "",
     .status = AL_STATUS_FAILED},
    {"killed_by_wall",
     "bash",
     "printf x > x; sleep 30",
     {"x"},
     wall_500ms,
     .artifacts = "",
     .status = AL_STATUS_TIMEOUT,
     .limit = AL_LIMIT_WALL,
     .within_ms = 10000},
    {"killed_by_cpu",
     "bash",
     "printf x > x; while :; do :; done",
     {"x"},
     cpu_200ms,
     .artifacts = "",
     .status = AL_STATUS_TIMEOUT,
     .limit = AL_LIMIT_CPU},
    {"killed_by_output",
     "bash",
     "printf x > x; head -c 2000 /dev/zero",
     {"x"},
     output_1000,
     .artifacts = "",
     .status = AL_STATUS_FAILED,
     .limit = AL_LIMIT_OUTPUT},
    {"cancelled",
     "bash",
     "printf x > x; echo; sleep 30",
     {"x"},
     .caller = {.cancel_on_output = true},
     .artifacts = "",
     .status = AL_STATUS_KILLED},

    /* what it leaves running */
    {"writer_in_the_background",
     "bash",
     LEFTOVERS("while :; do echo x >> log; done &"),
     {"log"},
     .check = check_one_log,
     .within_ms = 10000},
    {"writers_that_ignore_signals",
     "bash",
     LEFTOVERS(
         "for i in 1 2 3; do (trap '' TERM INT HUP; setsid bash -c 'while :; do echo $PPID >> "
         "log; done') & done"),
     {"log"},
     .check = check_one_log,
     .within_ms = 10000},
    {"renamer_in_the_background",
     "python",
     "import os\nn = range(200)\nfor i in n: open(f'a{i}', 'w').write('x')\nif os.fork() == 0:\n"
     " while True:\n  for i in n: os.rename(f'a{i}', f'b{i}')\n"
     "  for i in n: os.rename(f'b{i}', f'a{i}')\n"
     "while not os.path.exists('b9'): pass\nos._exit(0)",
     {"[ab]*"},
     .check = check_200,
     .within_ms = 10000},
    {"fork_bomb_in_the_background",
     "bash",
     "printf x > x; f() { f | f & }; f 2>/dev/null & exec sleep 0.2",
     {"x"},
     .artifacts = "x 644 x\n",
     .within_ms = 10000},
    {"all_pids_in_use",
     "python",
     "import os, time\nopen('x', 'w').write('x')\ntry:\n while True:\n"
     "  if os.fork() == 0: time.sleep(60)\nexcept OSError: os._exit(0)",
     {"x"},
     pids_8,
     .artifacts = "x 644 x\n"},
    {"stopped_in_the_background",
     "bash",
     "sleep 60 & kill -STOP $!; printf x > x",
     {"x"},
     .artifacts = "x 644 x\n",
     .within_ms = 10000},
    {"child_of_the_launcher",
     "python",
     "import ctypes, os\nnr = 56 if os.uname().machine == 'x86_64' else 220\n"
     "if ctypes.CDLL(None).syscall(nr, 0x8000 | 17, 0, 0, 0, 0) == 0: os._exit(0)\n"
     "open('x', 'w').write('x')",
     {"x"},
     .artifacts = "x 644 x\n",
     .within_ms = 10000},
};

static bool is_text(const struct al_artifact *a)
{
    return a->len <= SHOWN_BYTES && (a->len == 0 || !memchr(a->data, '\0', a->len));
}

/* The caller frees. */
static char *show(const struct al_artifacts *artifacts)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    for (size_t i = 0; i < artifacts->n; i++) {
        const struct al_artifact *a = &artifacts->items[i];
        fprintf(f, "%s %o ", a->path, a->mode);
        if (!is_text(a)) {
            fprintf(f, "#%zu", a->len);
        } else if (a->len > 0) {
            fwrite(a->data, 1, a->len, f);
        }
        fprintf(f, "%s\n", a->truncated ? " cut" : "");
    }
    if (artifacts->omitted > 0) {
        fprintf(f, "omitted %u\n", artifacts->omitted);
    }
    fclose(f);
    return text;
}

static size_t count_globs(const struct row *row)
{
    size_t n = 0;
    while (n < GLOBS_MAX && row->globs[n]) {
        n++;
    }
    return n;
}

static void assert_outcome(const struct row *row, const struct al_test_run *run)
{
    const struct al_result *r = &run->result;
    enum al_status status = row->status ? row->status : AL_STATUS_SUCCEEDED;
    if (run->rc != 0) {
        fail_msg("the backend failed: %s", run->err.text);
    }
    if (r->status != status || r->limit_hit != row->limit) {
        fail_msg("status %d reason %d limit %d (%s)\nstderr: %.400s", r->status, r->reason,
                 r->limit_hit, r->error, (const char *)run->out[AL_STDERR].data);
    }
}

struct state {
    const struct row *row;
    struct al_backend *backend;
};

static void test_row(void **state)
{
    const struct state *s = *state;
    const struct row *row = s->row;
    bool is_jail =
        strcmp(s->backend->name, "bubblewrap") == 0 || strcmp(s->backend->name, "firejail") == 0;
    if (AL_TEST_IS_SANITIZED && is_jail && row->change == memory_64) {
        skip(); /* with a sanitizer the warden, which counts as the job, leaves no memory */
    }
    struct al_job_spec spec = al_test_spec(s->backend, row->language, row->code);
    spec.artifacts = row->globs;
    spec.n_artifacts = count_globs(row);
    if (row->change) {
        row->change(&spec);
    }
    struct al_test_run run;
    al_test_run(s->backend, &spec, &row->caller, &run);
    assert_outcome(row, &run);
    char *shown = show(&run.result.artifacts);
    if (row->artifacts) {
        assert_string_equal(shown, row->artifacts);
    }
    if (row->check) {
        row->check(&run.result);
    }
    if (row->within_ms && run.took_ms > row->within_ms) {
        fail_msg("took %lld ms, not %d", (long long)run.took_ms, row->within_ms);
    }
    free(shown);
    al_test_run_finish(&run);
}

#define ROWS (sizeof rows / sizeof rows[0])

/* artifacts_test [BACKEND/ROW]: all, or those whose name contains the text. */
int main(int argc, char **argv)
{
    static struct CMUnitTest tests[ROWS * AL_TEST_BACKENDS];
    static struct state states[ROWS * AL_TEST_BACKENDS];
    static char names[ROWS * AL_TEST_BACKENDS][96];
    size_t n = 0;
    al_test_start();
    al_rows_print_claims("artifacts");
    for (unsigned b = 0; b < AL_TEST_BACKENDS; b++) {
        struct al_backend *backend = al_test_backend_of((enum al_test_backend)(1u << b));
        for (size_t i = 0; backend && i < ROWS; i++) {
            unsigned backends = rows[i].backends ? rows[i].backends : AL_TEST_CELLS;
            backends |= backends & AL_TEST_NATIVE ? AL_TEST_DOCKER : 0;
            snprintf(names[n], sizeof names[n], "%s/%s", backend->name, rows[i].name);
            if (!(backends & (1u << b)) || (argc > 1 && !strstr(names[n], argv[1]))) {
                continue;
            }
            states[n] = (struct state){&rows[i], backend};
            tests[n] = (struct CMUnitTest){
                .name = names[n], .test_func = test_row, .initial_state = &states[n]};
            n++;
        }
    }
    int failed = _cmocka_run_group_tests("artifacts", tests, n, NULL, NULL);
    al_test_stop();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
