#include "client/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "proto/airlock/v1/execution.pb-c.h"

#define WORDS_MAX 12

/* A command line and either what its error must contain or a check of the result. */
struct row {
    const char *name;
    const char *words[WORDS_MAX]; /* without argv[0] */
    const char *error;
    void (*check)(const struct al_options *options);
};

static void check_defaults(const struct al_options *o)
{
    assert_int_equal(o->command, AL_COMMAND_RUN);
    assert_string_equal(o->server, "fallback:1");
    assert_false(o->names_server);
    assert_false(o->run.follow);
    assert_null(o->tenant);
    assert_string_equal(o->run.code, "x");
    assert_null(o->run.language);
    assert_int_equal(o->timeout_ms, 0);
    assert_int_equal(o->run.memory_mb, 0);
    assert_int_equal(o->run.args.n, 0);
}

static void check_python_file(const struct al_options *o)
{
    assert_string_equal(o->run.file, "prog.py");
    assert_string_equal(o->run.language, "python");
}

static void check_explicit_language(const struct al_options *o)
{
    assert_string_equal(o->run.language, "python@3.11");
}

static void check_arguments(const struct al_options *o)
{
    check_python_file(o);
    assert_int_equal(o->run.args.n, 3);
    assert_string_equal(o->run.args.items[0], "--memory");
    assert_string_equal(o->run.args.items[1], "");
    assert_string_equal(o->run.args.items[2], "--");
    assert_int_equal(o->run.memory_mb, 64);
}

static void check_lists(const struct al_options *o)
{
    assert_int_equal(o->run.env.n, 2);
    assert_string_equal(o->run.env.items[0], "A=");
    assert_string_equal(o->run.env.items[1], "B=c=d");
    assert_int_equal(o->run.files.n, 1);
    assert_string_equal(o->run.files.items[0], "a:b:c");
}

static void check_numbers(const struct al_options *o)
{
    assert_true(o->run.wall_seconds == 1.5);
    assert_true(o->run.cpu_seconds == 0.25);
    assert_int_equal(o->run.pids, 0);
    assert_int_equal(o->run.disk_mb, 1048576);
    assert_int_equal(o->timeout_ms, 1);
}

static void check_attach(const struct al_options *o)
{
    assert_int_equal(o->command, AL_COMMAND_ATTACH);
    assert_string_equal(o->job_id, "0123456789abcdef");
    assert_int_equal(o->after_sequence, 7);
    assert_true(o->run.forward_stdin && o->run.tty);
}

static void check_follow(const struct al_options *o)
{
    assert_true(o->run.follow);
    assert_true(o->names_server);
}

static void check_linger(const struct al_options *o)
{
    assert_true(o->run.linger_seconds == 1.5);
    assert_int_equal(o->after_sequence, 0);
}

static void check_globals(const struct al_options *o)
{
    assert_int_equal(o->command, AL_COMMAND_BACKENDS);
    assert_string_equal(o->server, "unix:/x");
    assert_string_equal(o->tenant, "T_1.-");
    assert_true(o->json);
}

static void check_stdin_code(const struct al_options *o)
{
    assert_string_equal(o->run.file, "-");
    assert_string_equal(o->run.language, "bash");
}

static void check_empty_code(const struct al_options *o)
{
    assert_string_equal(o->run.code, "");
}

static void check_job(const struct al_options *o)
{
    assert_string_equal(o->job_id, "0123456789abcdef");
}

static void check_help(const struct al_options *o)
{
    assert_true(o->help);
}

static void check_cache_stats(const struct al_options *o)
{
    assert_int_equal(o->command, AL_COMMAND_CACHE);
    assert_int_equal(o->cache_action, AL_CACHE_ACTION_STATS);
}

static void check_cache_clear(const struct al_options *o)
{
    assert_int_equal(o->cache_action, AL_CACHE_ACTION_CLEAR);
    assert_true(o->json);
}

static void check_all_jobs(const struct al_options *o)
{
    assert_null(o->jobs.page);
    assert_int_equal(o->jobs.status, 0);
    assert_int_equal(o->jobs.limit, 0);
}

static void check_some_jobs(const struct al_options *o)
{
    assert_string_equal(o->jobs.page, "x");
    assert_int_equal(o->jobs.status, AIRLOCK__V1__JOB_STATUS__JOB_STATUS_EGRESS_BLOCKED);
    assert_int_equal(o->jobs.limit, 1000);
}

static void check_artifacts_here(const struct al_options *o)
{
    assert_int_equal(o->run.globs.n, 2);
    assert_string_equal(o->run.globs.items[1], "**/b");
    assert_string_equal(o->run.out, ".");
    assert_true(o->run.keeps_files);
}

static void check_artifacts_there(const struct al_options *o)
{
    assert_string_equal(o->run.out, "d");
    assert_false(o->run.keeps_files);
}

static void check_artifacts_nowhere(const struct al_options *o)
{
    assert_int_equal(o->run.globs.n, 1);
    assert_null(o->run.out);
}

static void check_last_wins(const struct al_options *o)
{
    assert_int_equal(o->run.memory_mb, 2);
    assert_string_equal(o->run.backend, "b");
}

static const struct row rows[] = {
    {"defaults", {"run", "-e", "x"}, NULL, check_defaults},
    {"language of the extension", {"run", "prog.py"}, NULL, check_python_file},
    {"options after the file", {"run", "prog.py", "--stats"}, NULL, check_python_file},
    {"explicit language", {"run", "x.rb", "-lpython@3.11"}, NULL, check_explicit_language},
    {"program arguments",
     {"run", "prog.py", "--memory", "64", "--", "--memory", "", "--"},
     NULL,
     check_arguments},
    {"lists",
     {"stream", "-e", "x", "--env", "A=", "--env=B=c=d", "--file", "a:b:c"},
     NULL,
     check_lists},
    {"numbers",
     {"run", "-ex", "--wall", "1.5", "--cpu=2.5e-1", "--pids", "0", "--disk", "1048576",
      "--timeout", "0.0001"},
     NULL,
     check_numbers},
    {"global options before the command",
     {"--server", "unix:/x", "--json", "backends", "--tenant", "T_1.-"},
     NULL,
     check_globals},
    {"code from standard input", {"run", "-", "-l", "bash"}, NULL, check_stdin_code},
    {"empty code", {"run", "-e", ""}, NULL, check_empty_code},
    {"job", {"job", "0123456789abcdef"}, NULL, check_job},
    {"all jobs", {"jobs"}, NULL, check_all_jobs},
    {"some jobs",
     {"jobs", "--limit", "1000", "--status=egress_blocked", "--page", "x"},
     NULL,
     check_some_jobs},
    {"cache stats", {"cache", "stats"}, NULL, check_cache_stats},
    {"cache clear", {"cache", "--json", "clear"}, NULL, check_cache_clear},
    {"help of cache", {"cache", "--help"}, NULL, check_help},
    {"help without a command", {"--help"}, NULL, check_help},
    {"help of an incomplete command", {"run", "-h"}, NULL, check_help},
    {"the last of two wins",
     {"run", "-ex", "--memory", "1", "--memory", "2", "--backend", "a", "--backend", "b"},
     NULL,
     check_last_wins},

    {"artifacts without a folder",
     {"run", "-ex", "--artifact", "a", "--artifact=**/b"},
     NULL,
     check_artifacts_here},
    {"artifacts and a folder",
     {"stream", "-ex", "--out", "d", "--artifact", "a"},
     NULL,
     check_artifacts_there},
    {"artifacts as JSON",
     {"run", "-ex", "--artifact", "a", "--json"},
     NULL,
     check_artifacts_nowhere},
    {"artifacts as JSON and in a folder",
     {"run", "-ex", "--artifact", "a", "--json", "--out", "d"},
     NULL,
     check_artifacts_there},

    {"nothing", {NULL}, "no command", NULL},
    {"attach", {"attach", "--after", "7", "--stdin", "-t", "0123456789abcdef"}, NULL, check_attach},
    {"attach without a job", {"attach"}, "attach: needs the id of a job", NULL},
    {"linger", {"stream", "--linger", "1.5", "-e", "x"}, NULL, check_linger},
    {"linger of a run",
     {"run", "--linger", "1", "-e", "x"},
     "--linger: not an option of run",
     NULL},
    {"follow", {"run", "--follow", "-e", "x", "--server", "a:1"}, NULL, check_follow},
    {"follow of a stream",
     {"stream", "--follow", "-e", "x"},
     "--follow: not an option of stream",
     NULL},
    {"after of a stream", {"stream", "--after", "1", "-e", "x"}, "--after: not an option", NULL},
    {"unknown command", {"frob"}, "'frob' is not a command", NULL},
    {"abbreviated command", {"backend"}, "'backend' is not a command", NULL},
    {"no program", {"run"}, "needs a FILE", NULL},
    {"two programs", {"run", "a.py", "-e", "x"}, "not together", NULL},
    {"code, then a file", {"run", "-e", "x", "a.py"}, "unexpected argument 'a.py'", NULL},
    {"two files", {"run", "a.py", "b.py"}, "follow '--'", NULL},
    {"empty file name", {"run", ""}, "unexpected argument ''", NULL},
    {"code twice", {"run", "-ex", "-ey"}, "--code: given twice", NULL},
    {"unknown extension", {"run", "a.rb"}, ".py, .js, .mjs", NULL},
    {"extension of a folder", {"run", "a.py/b"}, "--language: needed", NULL},
    {"unknown option", {"run", "--frob"}, "--frob: unknown option; 'airlock run --help'", NULL},
    {"unknown letter", {"run", "-hx"}, "-x: unknown option", NULL},
    {"abbreviated option", {"run", "-ex", "--mem", "5"}, "--mem: unknown option", NULL},
    {"ambiguous option", {"run", "-ex", "--s"}, "--s: unknown option", NULL},
    {"missing value", {"run", "-ex", "--memory"}, "--memory: needs a value", NULL},
    {"missing value of a letter", {"run", "-l"}, "-l: needs a value", NULL},
    {"flag with a value", {"run", "-ex", "--json=1"}, "--json: takes no value", NULL},
    {"option of another command",
     {"kill", "0123456789abcdef", "--memory", "1"},
     "--memory: not an option of kill",
     NULL},
    {"option before its command", {"--memory", "1", "run"}, "--memory: stands after", NULL},
    {"not a number", {"run", "-ex", "--memory", "64M"}, "--memory: '64M' is not a whole", NULL},
    {"negative", {"run", "-ex", "--memory", "-1"}, "from 0 to 1048576", NULL},
    {"above the maximum", {"run", "-ex", "--pids", "99999999999999999999"}, "--pids: ", NULL},
    {"blank in a number", {"run", "-ex", "--wall", " 1"}, "--wall: ' 1' is not a number", NULL},
    {"nan", {"run", "-ex", "--wall", "nan"}, "--wall: 'nan'", NULL},
    {"infinite", {"run", "-ex", "--wall", "inf"}, "--wall: 'inf'", NULL},
    {"1e300", {"run", "-ex", "--cpu", "1e300"}, "--cpu: '1e300'", NULL},
    {"1e999", {"run", "-ex", "--cpu", "1e999"}, "--cpu: '1e999'", NULL},
    {"negative seconds", {"run", "-ex", "--cpu", "-10"}, "--cpu: '-10'", NULL},
    {"hexadecimal", {"run", "-ex", "--cpu", "0x10"}, "--cpu: '0x10'", NULL},
    {"lonely exponent", {"run", "-ex", "--cpu", "1e"}, "--cpu: '1e'", NULL},
    {"lonely point", {"run", "-ex", "--cpu", "."}, "--cpu: '.'", NULL},
    {"empty value", {"run", "-ex", "--server", ""}, "--server: the value is empty", NULL},
    {"tenant with a slash", {"quota", "--tenant", "a/b"}, "--tenant: 'a/b'", NULL},
    {"env without =", {"run", "-ex", "--env", "A"}, "--env: 'A'", NULL},
    {"env without a name", {"run", "-ex", "--env", "=A"}, "--env: '=A'", NULL},
    {"file without a colon", {"run", "-ex", "--file", "a"}, "HOST:SANDBOX", NULL},
    {"file without a host", {"run", "-ex", "--file", ":a"}, "HOST:SANDBOX", NULL},
    {"file without a name", {"run", "-ex", "--file", "a:"}, "HOST:SANDBOX", NULL},
    {"inputs that are no JSON", {"run", "-ex", "--inputs", "{"}, "--inputs: not JSON", NULL},
    {"inputs that are no object", {"run", "-ex", "--inputs", "[]"}, "not a JSON object", NULL},
    {"out without an artifact", {"run", "-ex", "--out", "d"}, "--out: needs --artifact", NULL},
    {"code and input from one place", {"run", "-", "--stdin"}, "--stdin: not together", NULL},
    {"not UTF-8", {"run", "-ex", "--env", "A=\xff"}, "--env: not valid UTF-8", NULL},
    {"argument not UTF-8", {"run", "a.py", "--", "\xff"}, "arguments: not valid UTF-8", NULL},
    {"no job", {"kill"}, "kill: needs the id", NULL},
    {"too many jobs", {"jobs", "--limit", "1001"}, "from 0 to 1000", NULL},
    {"jobs of no status", {"jobs", "--status", "done"}, "--status: 'done' is none of pend", NULL},
    {"abbreviated status", {"jobs", "--status", "run"}, "--status: 'run' is none of pend", NULL},
    {"limit of a run", {"run", "-ex", "--limit", "1"}, "--limit: not an option of run", NULL},
    {"cache of nothing", {"cache"}, "cache: needs stats or clear", NULL},
    {"cache of another word", {"cache", "drop"}, "'drop' is neither stats nor clear", NULL},
    {"cache of two words", {"cache", "stats", "clear"}, "unexpected argument 'clear'", NULL},
    {"cache of an empty word", {"cache", ""}, "'' is neither stats nor clear", NULL},
    {"bad job", {"job", "0123456789ABCDEF"}, "is not a job id", NULL},
    {"two jobs", {"job", "0123456789abcdef", "x"}, "unexpected argument 'x'", NULL},
    {"argument of a command without", {"backends", "x"}, "unexpected argument 'x'", NULL},
    {"program arguments of none", {"backends", "--", "x"}, "unexpected argument 'x'", NULL},
};

#define ROWS (sizeof rows / sizeof *rows)

static void test_options__row(void **state)
{
    const struct row *row = *state;
    char *argv[WORDS_MAX + 2] = {"airlock"};
    int argc = 1;
    while (row->words[argc - 1]) {
        argv[argc] = (char *)row->words[argc - 1];
        argc++;
    }
    struct al_options options;
    struct al_err err = {0};
    int rc = al_options_parse(&options, argc, argv, "fallback:1", &err);
    if (row->error) {
        assert_true(rc < 0);
        assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
        if (!strstr(err.text, row->error)) {
            assert_string_equal(err.text, row->error);
        }
    } else {
        assert_string_equal(err.text, "");
        assert_int_equal(rc, 0);
        row->check(&options);
    }
    al_options_finish(&options);
}

static void test_options__has_a_default_server(void **state)
{
    (void)state;
    char *argv[] = {"airlock", "quota", NULL};
    const char *const fallbacks[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        struct al_options options;
        struct al_err err = {0};
        assert_int_equal(al_options_parse(&options, 2, argv, fallbacks[i], &err), 0);
        assert_string_equal(options.server, "127.0.0.1:50051");
        al_options_finish(&options);
    }
}

static void test_language_of__knows_extensions(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"a.py", "python"},      {"d/a.js", "javascript"}, {"a.mjs", "javascript"},
        {"a.cjs", "javascript"}, {"a.b.ts", "typescript"}, {"a.sh", "bash"},
        {"a.bash", "bash"},      {".py", "python"},
    };
    static const char *const unknown[] = {"a", "a.PY", "a.py.bak", "d.py/a", "py", ""};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_string_equal(al_options_language_of(table[i][0]), table[i][1]);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_null(al_options_language_of(unknown[i]));
    }
}

int main(void)
{
    struct CMUnitTest tests[ROWS + 2] = {
        cmocka_unit_test(test_options__has_a_default_server),
        cmocka_unit_test(test_language_of__knows_extensions),
    };
    for (size_t i = 0; i < ROWS; i++) {
        tests[2 + i] = (struct CMUnitTest){.name = rows[i].name,
                                           .test_func = test_options__row,
                                           .initial_state = (void *)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
