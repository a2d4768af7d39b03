/*
 * Files of programs, each with what it gets and how it is expected to end. A case is
 *
 *     == NAME
 *     DIRECTIVE WORD...
 *     --
 *     the program, up to the next case; an empty line before that one is not part of it
 *
 * A word with blanks or odd bytes stands in double quotes, with \n \t \r \" \\ and \xNN. What comes
 * before the first case is a comment, but for `language NAME`. Directives:
 *
 *     arg WORD...            env NAME VALUE         file PATH CONTENT [MODE]
 *     stdin TEXT             inputs JSON            quota NAME NUMBER
 *     code TEXT              instead of the program below `--`, for odd bytes
 *     fill WHAT BYTES        so many bytes: stdin, an argument (arg), a variable FILL (env), a file
 *                            `fill` (file), or comments behind the code (code)
 *     signal NUMBER          comes from the caller at the first byte of output
 *     exit NUMBER, dies SIGNAL, limit NAME      how it ends; exit 0 is what goes without saying
 *     cold                   such a job does not get a started interpreter
 *     varies                 stdout is another one in every run
 *     shows                  stdout tells a started interpreter: documented in prestart.h
 */
#pragma once

#include "backends/api/job_spec.h"
#include "backends/api/result.h"

#define CASES_MAX 400
#define WORDS_MAX 300

enum expectation {
    IS_SAME, /* to the byte */
    VARIES,
    SHOWS,
};

struct test_case {
    const char *name;
    const char *language;
    struct al_bytes code;
    const char *args[WORDS_MAX];
    size_t n_args;
    struct al_env env[WORDS_MAX];
    size_t n_env;
    struct al_file files[16];
    size_t n_files;
    struct al_bytes stdin_bytes;
    const char *inputs_json;
    struct al_quotas quotas; /* 0: the default */
    int signal_on_output;
    enum expectation expectation;
    bool cold;
    enum al_exit_kind exit_kind; /* AL_EXIT_NONE: not looked at */
    int exit_value;
    enum al_limit limit;
};

/* Adds the cases of a file to `ret`, which holds `n` and has room for CASES_MAX; how many it holds
 * then. Prints what is wrong with the file and exits. What a case points to lives as long as the
 * process. */
size_t cases_read(const char *path, struct test_case *ret, size_t n);
