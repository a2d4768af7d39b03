#include "backends/launcher/glob.h"

#include <errno.h>
#include <string.h>

#include "backends/base/chars.h"

#define NO_CHARACTER 0x110000u /* added to a byte that is of no character: equal to itself only */

struct text {
    const char *at;
    const char *end;
};

static uint32_t next_char(struct text *t)
{
    uint32_t c = 0;
    size_t n = al_char_decode(t->at, (size_t)(t->end - t->at), &c);
    if (n == 0) {
        c = NO_CHARACTER + (uint8_t)*t->at;
        n = 1;
    }
    t->at += n;
    return c;
}

/* A pattern's character that stands for itself. */
static uint32_t next_literal(struct text *p)
{
    uint32_t c = next_char(p);
    return c == '\\' && p->at < p->end ? next_char(p) : c;
}

/* After a `[`. False when there is no `]` to it; `p` is then unspecified. */
static bool match_set(struct text *p, uint32_t c, bool *ret_match)
{
    bool negated = p->at < p->end && (*p->at == '!' || *p->at == '^');
    bool found = false;
    p->at += negated;
    for (bool first = true; p->at < p->end && (first || *p->at != ']'); first = false) {
        uint32_t low = next_literal(p);
        uint32_t high = low;
        if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
            p->at++;
            high = next_literal(p);
        }
        found |= low <= c && c <= high;
    }
    if (p->at == p->end) {
        return false;
    }
    p->at++;
    *ret_match = found != negated;
    return true;
}

/* One character against the pattern's next, which is no `*` and there. */
static bool match_one(struct text *p, uint32_t c)
{
    if (*p->at == '?') {
        p->at++;
        return true;
    }
    struct text set = {p->at + 1, p->end};
    bool match;
    if (*p->at == '[' && match_set(&set, c, &match)) {
        *p = set;
        return match;
    }
    return next_literal(p) == c;
}

/* Only the last `*` is ever tried again: that suffices, and makes it quadratic at worst. */
static bool match_part(const struct al_glob_part *part, const char *name, size_t len)
{
    struct text p = {part->text, part->text + part->len};
    struct text s = {name, name + len};
    struct text star = {NULL, NULL}, after_star = {NULL, NULL};
    if (len > 0 && name[0] == '.' && (part->len == 0 || part->text[0] != '.')) {
        return false;
    }
    while (s.at < s.end || p.at < p.end) {
        if (p.at < p.end && *p.at == '*') {
            p.at++;
            after_star = p;
            star = s;
            continue;
        }
        if (p.at < p.end && s.at < s.end && match_one(&p, next_char(&s))) {
            continue;
        }
        if (!star.at || star.at == star.end) {
            return false;
        }
        (void)next_char(&star);
        s = star;
        p = after_star;
    }
    return true;
}

/* A component that is not "**". */
static int add_part(struct al_glob *glob, const char *text, size_t len, bool gap)
{
    if (glob->n == AL_GLOB_PARTS_MAX) {
        return -E2BIG;
    }
    glob->parts[glob->n++] = (struct al_glob_part){.text = text, .len = len, .gap = gap};
    return 0;
}

int al_glob_parse(const char *text, struct al_glob *ret)
{
    bool gap = false;
    int rc = 0;
    ret->n = 0;
    for (const char *at = text; rc == 0; at++) {
        const char *end = strchrnul(at, '/');
        size_t len = (size_t)(end - at);
        bool any = len == 2 && at[0] == '*' && at[1] == '*';
        if (!any) {
            rc = add_part(ret, at, len, gap);
        } else if (*end == '\0') {
            rc = add_part(ret, at, 1, true); /* every file below: a "*" at any depth */
        }
        gap = any;
        if (*end == '\0') {
            break;
        }
        at = end;
    }
    return rc;
}

uint64_t al_glob_step(const struct al_glob *glob, uint64_t positions, const char *name, size_t len)
{
    uint64_t next = 0;
    bool hidden = name[0] == '.';
    for (size_t i = 0; i < glob->n; i++) {
        if (!(positions >> i & 1)) {
            continue;
        }
        if (glob->parts[i].gap && !hidden) {
            next |= UINT64_C(1) << i;
        }
        if (match_part(&glob->parts[i], name, len)) {
            next |= UINT64_C(2) << i;
        }
    }
    return next;
}
