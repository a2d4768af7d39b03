/*
 * The youngest advisory of each tool that lets programs out or makes them root is enough: what has
 * it fixed has the older ones fixed too. tests/escape/advisories.md goes through all of them.
 * Missing here is firejail's #7154, open in Debian 12: it needs a home folder that outlives its
 * sandbox, of which a jail has none.
 */
#include "backends/jail/version.h"

#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

static const struct {
    const char *name;
    const char *fixed_in;
    const char *advisory;
} tools[AL_JAIL_TOOLS] = {
    [AL_JAIL_BUBBLEWRAP] = {"bubblewrap", "0.4.1", "CVE-2020-5291"},
    [AL_JAIL_FIREJAIL] = {"firejail", "0.9.70", "CVE-2022-31214"},
};

const char *al_jail_tool_name(enum al_jail_tool tool)
{
    return tools[tool].name;
}

bool al_jail_version_find(enum al_jail_tool tool, const char *text, char ret[AL_JAIL_VERSION_MAX])
{
    const char *name = al_jail_tool_name(tool);
    const char *at = strstr(text, name);
    if (!at) {
        return false;
    }
    at += strlen(name);
    at += strspn(at, " ");
    at += strncmp(at, "version ", 8) == 0 ? 8 : 0;
    size_t n = strspn(at, DIGITS ".");
    if (n == 0 || n >= AL_JAIL_VERSION_MAX || at[0] == '.' || !memchr(at, '.', n)) {
        return false;
    }
    memcpy(ret, at, n);
    ret[n] = '\0';
    return true;
}

/* Number by number; what is missing counts as 0. */
static bool is_before(const char *a, const char *b)
{
    while (*a || *b) {
        char *end_a, *end_b;
        unsigned long x = strtoul(a, &end_a, 10);
        unsigned long y = strtoul(b, &end_b, 10);
        if (x != y) {
            return x < y;
        }
        if ((end_a == a && *a) || (end_b == b && *b)) {
            return false; /* not a version: al_jail_version_find makes none such */
        }
        a = end_a + (*end_a == '.');
        b = end_b + (*end_b == '.');
    }
    return false;
}

const char *al_jail_version_flaw(enum al_jail_tool tool, const char *version)
{
    return is_before(version, tools[tool].fixed_in) ? tools[tool].advisory : NULL;
}
