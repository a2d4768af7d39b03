#include "client/escape.h"

size_t al_escape_filter(struct al_escape *escape, const uint8_t *keys, size_t n, uint8_t *ret,
                        bool *ret_leaves)
{
    size_t len = 0;
    *ret_leaves = false;
    for (size_t i = 0; i < n; i++) {
        if (!escape->has_tilde && !escape->in_line && keys[i] == '~') {
            escape->has_tilde = true;
            continue;
        }
        if (escape->has_tilde && keys[i] == '.') {
            *ret_leaves = true;
            return len;
        }
        if (escape->has_tilde && keys[i] != '~') {
            ret[len++] = '~';
        }
        ret[len++] = keys[i];
        escape->has_tilde = false;
        escape->in_line = keys[i] != '\r' && keys[i] != '\n';
    }
    return len;
}
