#include "backends/base/host_match.h"

#include <arpa/inet.h>
#include <string.h>

#define PATTERN_MAX (AL_HOST_MAX + sizeof "/128:65535")

struct block {
    uint8_t net[16];
    uint8_t bits;
};

/* A host or pattern in lower case, apart from its port. */
struct spec {
    char text[PATTERN_MAX];
    uint16_t port; /* 0: none */
};

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

static bool in_block(const uint8_t *bytes, const uint8_t *net, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    return memcmp(bytes, net, whole) == 0 &&
           (rest == 0 || ((bytes[whole] ^ net[whole]) >> (8 - rest)) == 0);
}

bool al_address_parse(const char *text, struct al_address *ret)
{
    char plain[INET6_ADDRSTRLEN];
    bool bracket = text[0] == '[';
    text += bracket;
    size_t len = strcspn(text, bracket ? "]%" : "%");
    if (len >= sizeof plain || (text[len] == '%' && !memchr(text, ':', len)) ||
        (bracket && strchr(text, ']') != text + strlen(text) - 1))
    {
        return false;
    }
    memcpy(plain, text, len);
    plain[len] = '\0';
    uint8_t bytes[16];
    if (!bracket && inet_pton(AF_INET, plain, bytes) == 1) {
        ret->len = 4;
        memcpy(ret->bytes, bytes, 4);
    } else if (inet_pton(AF_INET6, plain, bytes) != 1) {
        return false;
    } else if (memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0) {
        ret->len = 4;
        memcpy(ret->bytes, bytes + sizeof mapped_prefix, 4);
    } else {
        ret->len = 16;
        memcpy(ret->bytes, bytes, 16);
    }
    return true;
}

static bool in_any(const struct al_address *a, const struct block *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (in_block(a->bytes, blocks[i].net, blocks[i].bits)) {
            return true;
        }
    }
    return false;
}

bool al_address_is_loopback(const struct al_address *a)
{
    static const struct block v4[] = {{{127}, 8}, {{0}, 32}};
    static const struct block v6[] = {{{[15] = 1}, 128}, {{0}, 128}};
    return a->len == 4 ? in_any(a, v4, 2) : in_any(a, v6, 2);
}

/* The special-purpose registries of IANA (RFC 6890 and its successors). */
bool al_address_is_public(const struct al_address *a)
{
    static const struct block v4[] = {
        {{0}, 8},         {{10}, 8},       {{100, 64}, 10},      {{127}, 8},
        {{169, 254}, 16}, {{172, 16}, 12}, {{192, 0, 0}, 24},    {{192, 0, 2}, 24},
        {{192, 168}, 16}, {{198, 18}, 15}, {{198, 51, 100}, 24}, {{203, 0, 113}, 24},
        {{224}, 4},       {{240}, 4},
    };
    static const struct block hidden[] = {
        {{0x20, 0x01, 0x0d, 0xb8}, 32}, {{0x20, 0x02}, 16}, {{0x20, 0x01}, 32}};
    static const struct block global = {{0x20}, 3};
    if (a->len == 4) {
        return !in_any(a, v4, sizeof v4 / sizeof v4[0]);
    }
    return in_any(a, &global, 1) && !in_any(a, hidden, sizeof hidden / sizeof hidden[0]);
}

/* A decimal number up to max that ends the string; -1: none. */
static int read_number(const char *s, int max)
{
    int n = 0;
    for (const char *p = s; *p; p++) {
        if (*p < '0' || *p > '9' || (n = n * 10 + (*p - '0')) > max) {
            return -1;
        }
    }
    return *s ? n : -1;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* The one colon of a name or IPv4 address, or the one behind a bracket. */
static const char *find_port(const char *text)
{
    const char *colon = strchr(text, ':');
    const char *bracket = text[0] == '[' && colon ? strchr(text, ']') : NULL;
    if (bracket && colon < bracket) {
        return bracket[1] == ':' ? bracket + 1 : NULL;
    }
    return colon && !strchr(colon + 1, ':') ? colon : NULL;
}

static bool read_spec(const char *text, struct spec *ret)
{
    const char *colon = find_port(text);
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    int port = colon ? read_number(colon + 1, UINT16_MAX) : 0;
    while (len > 0 && text[len - 1] == '.') {
        len--;
    }
    if (port < 0 || (colon && port == 0) || len == 0 || len >= sizeof ret->text) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        ret->text[i] = lower(text[i]);
    }
    ret->text[len] = '\0';
    ret->port = (uint16_t)port;
    return true;
}

/* `[a-c]` or `[!a]` at p: where it ends, NULL when it never does. */
static const char *match_set(const char *p, char c, bool *ret_in)
{
    bool negated = p[1] == '!', in = false;
    const char *first = p + 1 + negated;
    for (p = first; *p && (*p != ']' || p == first); p++) {
        if (p[1] == '-' && p[2] && p[2] != ']') {
            in |= c >= p[0] && c <= p[2];
            p += 2;
        } else {
            in |= c == *p;
        }
    }
    *ret_in = in != negated;
    return *p ? p + 1 : NULL;
}

/* The pattern behind its first element if that matches c, else NULL. */
static const char *match_one(const char *p, char c)
{
    bool in;
    const char *after = *p == '[' ? match_set(p, c, &in) : NULL;
    if (after) {
        return in ? after : NULL;
    }
    return *p && (*p == '?' || *p == c) ? p + 1 : NULL;
}

static bool match_glob(const char *p, const char *s)
{
    const char *star = NULL, *retry = NULL;
    while (*s) {
        const char *after;
        if (*p == '*') {
            star = ++p;
            retry = s;
        } else if ((after = match_one(p, *s))) {
            p = after;
            s++;
        } else if (star) {
            p = star;
            s = ++retry;
        } else {
            return false;
        }
    }
    return p[strspn(p, "*")] == '\0';
}

static bool match_block(char *pattern, char *slash, const struct al_address *host)
{
    struct al_address net;
    *slash = '\0';
    if (!al_address_parse(pattern, &net) || net.len != host->len) {
        return false;
    }
    bool mapped = net.len == 4 && strchr(pattern, ':');
    int bits = read_number(slash + 1, net.len == 4 && !mapped ? 32 : 128) - (mapped ? 96 : 0);
    return bits >= 0 && in_block(host->bytes, net.bytes, (unsigned)bits);
}

static bool match_name(const char *pattern, const char *host)
{
    size_t len = strlen(host), tail = strlen(pattern);
    return len >= tail && strcmp(host + len - tail, pattern) == 0 &&
           (len == tail || host[len - tail - 1] == '.');
}

static bool match(const char *pattern, const struct spec *host, const struct al_address *address)
{
    struct spec wanted;
    struct al_address same;
    if (!read_spec(pattern, &wanted) || (wanted.port && wanted.port != host->port)) {
        return false;
    }
    char *slash = strchr(wanted.text, '/');
    if (slash) {
        return address && wanted.port == 0 && match_block(wanted.text, slash, address);
    }
    if (al_address_parse(wanted.text, &same)) {
        return address && address->len == same.len &&
               memcmp(address->bytes, same.bytes, same.len) == 0;
    }
    if (strpbrk(wanted.text, "*?")) {
        return (!address || al_address_is_public(address)) && match_glob(wanted.text, host->text);
    }
    return !address && match_name(wanted.text, host->text);
}

bool al_host_match_any(const char *const *patterns, size_t n, const char *host, uint16_t port)
{
    struct spec spec;
    struct al_address address;
    if (!read_spec(host, &spec)) {
        return false;
    }
    if (spec.port == 0) {
        spec.port = port;
    }
    bool is_address = al_address_parse(spec.text, &address);
    if (is_address) {
        inet_ntop(address.len == 4 ? AF_INET : AF_INET6, address.bytes, spec.text,
                  sizeof spec.text);
    }
    for (size_t i = 0; i < n; i++) {
        if (match(patterns[i], &spec, is_address ? &address : NULL)) {
            return true;
        }
    }
    return false;
}

bool al_host_match(const char *pattern, const char *host, uint16_t port)
{
    return al_host_match_any(&pattern, 1, host, port);
}
