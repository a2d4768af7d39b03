#include "backends/base/version.h"

#include <string.h>

bool al_version_pick(const char *text, char *ret, size_t size)
{
    for (const char *at = text + strcspn(text, "0123456789"); *at; at += strcspn(at, "0123456789"))
    {
        size_t n = strspn(at, "0123456789.");
        if (memchr(at, '.', n) && n < size) {
            while (at[n - 1] == '.') {
                n--;
            }
            memcpy(ret, at, n);
            ret[n] = '\0';
            return true;
        }
        at += n;
    }
    return false;
}
