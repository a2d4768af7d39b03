/*
 * What the escape suite's build of the launcher answers when it asks whether to put a barrier up:
 * the environment says which are off, as the sum of their bits.
 */
#include <stdlib.h>

#include "backends/launcher/barrier.h"
#include "tests/escape/weakened.h"

static unsigned long off;

/* Before main, which clears the environment. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *value = getenv(AL_BARRIERS_OFF_ENV);
    off = value ? strtoul(value, NULL, 10) : 0;
}

bool al_escape_suite_keeps(enum al_barrier barrier)
{
    return !(off & 1ul << barrier);
}
