/*
 * When a tool's backend is available, and what is said when it is not: a program that is missing,
 * too old, broken, or that leaves a layer out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/runner.h"

/* Part of what a jail sees, so that the tool can be executed from there. */
static char dir[] = "/var/tmp/airlock-tool-XXXXXX";
static char tool_path[64];

static const struct tool {
    const char *name, *program;
    enum al_test_backend backend;
} bubblewrap = {"bubblewrap", "/usr/bin/bwrap", AL_TEST_BUBBLEWRAP},
  firejail = {"firejail", "/usr/bin/firejail", AL_TEST_FIREJAIL};

struct row {
    const char *name;
    const struct tool *tool;
    const char *script; /* of the tool; NULL: there is none. "@" stands for the real one */
    const char *config; /* in its section */
    const char *reason; /* part of why it is not available; NULL: it is */
};

#define SAYS(version) "[ \"$1\" != --version ] || { echo '" version "'; exit; }\n"

static const struct row rows[] = {
    {"bubblewrap_as_it_is", &bubblewrap, "exec @ \"$@\"\n", "", NULL},
    {"bubblewrap_missing", &bubblewrap, NULL, "", "cannot be executed: No such file or directory"},
    {"bubblewrap_off", &bubblewrap, NULL, "program =\n", "[bubblewrap] program is empty"},
    {"bubblewrap_says_no_version", &bubblewrap, "echo 1.0\n", "", "does not say its version"},
    {"bubblewrap_with_a_known_escape", &bubblewrap, SAYS("bubblewrap 0.4.0") "exec @ \"$@\"\n", "",
     "bubblewrap 0.4.0 lets programs out (CVE-2020-5291); [bubblewrap] allow_known_escapes"},
    {"bubblewrap_with_a_known_escape_allowed", &bubblewrap,
     SAYS("bubblewrap 0.4.0") "exec @ \"$@\"\n", "allow_known_escapes = yes\n", NULL},
    {"bubblewrap_fails", &bubblewrap,
     SAYS("bubblewrap 0.8.0") "echo 'no luck today' >&2; echo more >&2; exit 3\n", "",
     "bubblewrap makes no jail here: no luck today"},
    {"bubblewrap_says_nothing", &bubblewrap, SAYS("bubblewrap 0.8.0") "exit 0\n", "",
     "bubblewrap makes no jail here: it ended without a word"},
    {"bubblewrap_without_its_network_namespace", &bubblewrap,
     SAYS(
         "bubblewrap 0.8.0") "for a; do shift; [ \"$a\" = --unshare-net ] || set -- \"$@\" \"$a\"; "
                             "done\nexec @ \"$@\"\n",
     "", "the jail lacks netns"},
    {"bubblewrap_without_the_filter", &bubblewrap,
     SAYS("bubblewrap 0.8.0") "for a; do shift; [ \"$a\" = --seccomp ] || [ \"$a\" = 4 ] || "
                              "set -- \"$@\" \"$a\"; done\nexec @ \"$@\"\n",
     "", "the jail lacks seccomp"},
    {"bubblewrap_without_cgroups", &bubblewrap, "exec @ \"$@\"\n",
     "[cells]\ncgroup_parent = none/such\nrequire = seccomp\n", "there are no cgroups: "},
    {"firejail_as_it_is", &firejail, NULL, "program = /usr/bin/firejail\n", NULL},
    {"firejail_missing", &firejail, NULL, "", "cannot be executed: No such file or directory"},
    {"firejail_off", &firejail, NULL, "program =\n", "[firejail] program is empty"},
    {"firejail_with_a_known_escape", &firejail, SAYS("firejail version 0.9.68") "exec @ \"$@\"\n",
     "", "firejail 0.9.68 lets programs out (CVE-2022-31214); [firejail] allow_known_escapes"},
    {"firejail_without_its_set_user_id_bit", &firejail,
     SAYS("firejail version 0.9.72") "exec @ \"$@\"\n", "", "has no set-user-id bit of root's"},
};

static void write_script(const struct row *row)
{
    FILE *f = fopen(tool_path, "we");
    assert_non_null(f);
    fputs("#!/bin/bash\n", f);
    for (const char *at = row->script; *at; at++) {
        if (*at == '@' && at[1] == ' ') {
            fputs(row->tool->program, f);
        } else {
            fputc(*at, f);
        }
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(tool_path, 0755), 0);
}

static void assert_runs(struct al_backend *b)
{
    struct al_test_run run;
    struct al_job_spec spec = al_test_spec(b, "bash", "echo ok");
    al_test_run(b, &spec, NULL, &run);
    assert_int_equal(run.rc, 0);
    assert_string_equal((const char *)run.out[AL_STDOUT].data, "ok\n");
    assert_non_null(strstr(b->version, b->name));
    al_test_run_finish(&run);
}

static void test_row(void **state)
{
    const struct row *row = *state;
    char config[1024];
    bool own_program = strstr(row->config, "program") != NULL;
    unlink(tool_path);
    if (row->script) {
        write_script(row);
    }
    snprintf(config, sizeof config,
             "[cells]\nprepared = 0\nprestarted = 0\nsystem_paths = /usr /bin /lib /lib64 %s\n"
             "[%s]\n%s%s%s%s",
             dir, row->tool->name, own_program ? "" : "program = ", own_program ? "" : tool_path,
             own_program ? "" : "\n", row->config);
    al_test_start_with(config);
    struct al_backend *b = al_test_backend_of(row->tool->backend);
    if (b->available != (row->reason == NULL) ||
        (row->reason && !strstr(b->unavailable_reason, row->reason)))
    {
        fail_msg("%s: %s", b->available ? "available" : "not available", b->unavailable_reason);
    }
    if (b->available) {
        assert_runs(b);
    } else {
        assert_int_equal(b->isolation, 0);
    }
    al_test_stop();
}

#define ROWS (sizeof rows / sizeof rows[0])

/* jail_test [PATTERN]: all, or those whose name matches. */
int main(int argc, char **argv)
{
    static struct CMUnitTest tests[ROWS];
    if (!mkdtemp(dir) || chmod(dir, 0755) < 0) {
        perror(dir);
        return EXIT_FAILURE;
    }
    snprintf(tool_path, sizeof tool_path, "%s/tool", dir);
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    int failed = cmocka_run_group_tests_name("jail", tests, NULL, NULL);
    unlink(tool_path);
    rmdir(dir);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
