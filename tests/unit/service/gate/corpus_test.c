/*
 * The false-positive rate over the scripts in the folder that the argument names: none of them
 * touches the network. Prints what is blocked and why.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "tests/unit/service/gate/gate_support.h"

#define SCRIPTS    64
#define BLOCKED    9 /* measured; stated in service/gate/gate.h */
#define SCRIPT_MAX 65536

static const char *folder;

static const char *language_of(const char *name)
{
    static const char *const languages[][2] = {{".py", "python"},
                                               {".js", "javascript"},
                                               {".mjs", "javascript"},
                                               {".ts", "typescript"},
                                               {".bash", "bash"}};
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++) {
        if (strcmp(strrchr(name, '.'), languages[i][0]) == 0) {
            return languages[i][1];
        }
    }
    fail_msg("%s: no such language", name);
    return NULL;
}

static bool is_blocked(DIR *dir, const char *name)
{
    static char code[SCRIPT_MAX];
    char why[256];
    struct al_gate_report report;
    al_auto_arena struct al_arena *arena = al_arena_create(1 << 20);
    assert_true(al_io_read_file(dirfd(dir), name, code, sizeof code) > 0);
    struct al_job_spec spec = gate_spec(language_of(name), code);
    assert_int_equal(al_gate_scan(&spec, arena, &report), 0);
    if (report.block) {
        al_gate_explain(report.block, why, sizeof why);
        printf("%s: %s\n", name, why);
    }
    return report.block;
}

static void test_corpus__false_positives(void **state)
{
    (void)state;
    al_auto_closedir DIR *dir = opendir(folder);
    unsigned scripts = 0, blocked = 0;
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') {
            scripts++;
            blocked += is_blocked(dir, entry->d_name);
        }
    }
    printf("false positives: %u of %u scripts, %.1f %%\n", blocked, scripts,
           100.0 * blocked / scripts);
    assert_int_equal(scripts, SCRIPTS);
    assert_true(blocked <= BLOCKED);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus__false_positives)};
    folder = argc > 1 ? argv[1] : ".";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
