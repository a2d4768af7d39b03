/* Which version a tool says it has, and which of them are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/jail/version.h"

static void test_find(void **state)
{
    (void)state;
    static const struct {
        enum al_jail_tool tool;
        const char *text;
        const char *version; /* NULL: there is none */
    } rows[] = {
        {AL_JAIL_BUBBLEWRAP, "bubblewrap 0.8.0\n", "0.8.0"},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap 0.11.1", "0.11.1"},
        {AL_JAIL_BUBBLEWRAP, "warning: 1.2\nbubblewrap 0.8.0\n", "0.8.0"},
        {AL_JAIL_FIREJAIL, "firejail version 0.9.72\n\nCompile time support:\n", "0.9.72"},
        {AL_JAIL_FIREJAIL, "firejail version 0.9.64.4\n", "0.9.64.4"},
        {AL_JAIL_FIREJAIL, "firejail version 0.9.80-rc1\n", "0.9.80"},
        {AL_JAIL_FIREJAIL, "bubblewrap 0.8.0\n", NULL},
        {AL_JAIL_BUBBLEWRAP, "firejail version 0.9.72\n", NULL},
        {AL_JAIL_BUBBLEWRAP, "", NULL},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap", NULL},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap version", NULL},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap 8", NULL},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap .8", NULL},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap git", NULL},
        {AL_JAIL_BUBBLEWRAP, "bubblewrap 0.1111111111111111111111111111111111", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char version[AL_JAIL_VERSION_MAX] = "untouched";
        bool found = al_jail_version_find(rows[i].tool, rows[i].text, version);
        if (found != (rows[i].version != NULL) ||
            strcmp(version, found ? rows[i].version : "untouched") != 0)
        {
            fail_msg("'%s': %s", rows[i].text, found ? version : "no version");
        }
    }
}

static void test_flaw(void **state)
{
    (void)state;
    static const struct {
        enum al_jail_tool tool;
        const char *version;
        const char *flaw; /* NULL: none is known */
    } rows[] = {
        {AL_JAIL_BUBBLEWRAP, "0.8.0", NULL}, /* of Debian 12, like the next */
        {AL_JAIL_FIREJAIL, "0.9.72", NULL},
        {AL_JAIL_BUBBLEWRAP, "0.4.1", NULL},
        {AL_JAIL_BUBBLEWRAP, "0.11.1", NULL},
        {AL_JAIL_BUBBLEWRAP, "0.10.0", NULL},
        {AL_JAIL_BUBBLEWRAP, "1.0", NULL},
        {AL_JAIL_BUBBLEWRAP, "0.4.0", "CVE-2020-5291"},
        {AL_JAIL_BUBBLEWRAP, "0.4", "CVE-2020-5291"},
        {AL_JAIL_BUBBLEWRAP, "0.1.3", "CVE-2020-5291"},
        {AL_JAIL_FIREJAIL, "0.9.70", NULL},
        {AL_JAIL_FIREJAIL, "0.9.70.1", NULL},
        {AL_JAIL_FIREJAIL, "0.10", NULL},
        {AL_JAIL_FIREJAIL, "0.9.69", "CVE-2022-31214"},
        {AL_JAIL_FIREJAIL, "0.9.64.4", "CVE-2022-31214"},
        {AL_JAIL_FIREJAIL, "0.9.9", "CVE-2022-31214"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *flaw = al_jail_version_flaw(rows[i].tool, rows[i].version);
        if ((flaw == NULL) != (rows[i].flaw == NULL) || (flaw && strcmp(flaw, rows[i].flaw) != 0)) {
            fail_msg("%s %s: %s", al_jail_tool_name(rows[i].tool), rows[i].version,
                     flaw ? flaw : "no flaw");
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_flaw),
    };
    return cmocka_run_group_tests_name("version", tests, NULL, NULL);
}
