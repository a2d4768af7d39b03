#include "service/gate/find.h"

#include <string.h>
#include <strings.h>

#include "service/gate/host.h"

/*
 * Theory of operation: the text falls into tokens of the bytes that hosts, ports and addresses are
 * made of. A token that ends with ':' before two slashes is a URL's scheme, and its authority is
 * read at once; any other token with a dot or a colon may be an address or host:port. Every byte is
 * looked at a bounded number of times: an authority ends at a slash, so two of them never overlap.
 */

enum { TOKEN = 1, DOT = 2, COLON = 4 };

static const uint8_t classes[256] = {
    ['0' ... '9'] = TOKEN,  ['a' ... 'z'] = TOKEN,   ['A' ... 'Z'] = TOKEN, ['-'] = TOKEN,
    ['_'] = TOKEN,          ['%'] = TOKEN,           ['.'] = TOKEN | DOT,   [':'] = TOKEN | COLON,
    [GATE_UNKNOWN] = TOKEN, [0x80 ... 0xff] = TOKEN,
};

static const bool ends_authority[256] = {
    [0] = true,   [2 ... ' '] = true, ['/'] = true, ['?'] = true, ['#'] = true, ['\\'] = true,
    ['"'] = true, ['\''] = true,      ['`'] = true, ['<'] = true, ['>'] = true, [0x7f] = true,
};

struct find {
    struct gate_scan *scan;
    const struct gate_span *span;
    size_t mark;
};

struct token {
    const char *p;
    size_t len;
    size_t at; /* where it begins in the text */
    const char *text_end;
};

static uint32_t line_at(struct find *f, size_t offset)
{
    const struct gate_span *s = f->span;
    while (f->mark + 1 < s->n_marks && s->marks[f->mark + 1].offset <= s->base + offset) {
        f->mark++;
    }
    return s->marks[f->mark].line;
}

static void report(struct find *f, size_t at, const struct gate_host *host, enum gate_rule rule,
                   uint16_t port, uint16_t implied_port)
{
    gate_report(f->scan, &(struct gate_sighting){.host = host->text,
                                                 .loopback = host->loopback,
                                                 .port = port,
                                                 .implied_port = implied_port,
                                                 .line = line_at(f, at),
                                                 .rule = rule});
}

static bool is_alpha(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A port that stands at p: how many digits it has; 0 when there is none. */
static size_t read_port(const char *p, const char *end, uint16_t *ret)
{
    uint32_t port = 0;
    size_t n = 0;
    for (; n < 6 && p + n < end && is_digit(p[n]); n++) {
        port = port * 10 + (uint32_t)(p[n] - '0');
    }
    if (port == 0 || port > UINT16_MAX || n > 5) {
        return 0;
    }
    *ret = (uint16_t)port;
    return n;
}

struct scheme {
    const char *name;
    uint16_t port;
    bool web; /* reads more than two slashes as two */
};

static const struct scheme *find_scheme(const char *p, size_t len)
{
    static const struct scheme schemes[] = {
        {"http", 80, true}, {"https", 443, true}, {"ws", 80, true},
        {"wss", 443, true}, {"ftp", 21, true},    {"file", 0, false},
    };
    static const struct scheme other = {"", 0, false};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (len == strlen(schemes[i].name) && strncasecmp(p, schemes[i].name, len) == 0) {
            return &schemes[i];
        }
    }
    return &other;
}

/* A URL whose scheme lies in the token; returns where to read on. */
static size_t find_url(struct find *f, const struct token *t)
{
    const char *d = f->span->data, *end = t->text_end, *colon = t->p + t->len - 1;
    const char *name = colon;
    while (name > t->p &&
           (is_alpha(name[-1]) || is_digit(name[-1]) || name[-1] == '-' || name[-1] == '.'))
    {
        name--;
    }
    const struct scheme *scheme = find_scheme(name, (size_t)(colon - name));
    const char *p = colon + 3;
    while (scheme->web && p < end && (*p == '/' || *p == '\\')) {
        p++;
    }
    const char *host_at = p, *authority_end = p;
    for (; authority_end < end && !ends_authority[(uint8_t)*authority_end]; authority_end++) {
        if (*authority_end == '@') {
            host_at = authority_end + 1;
        }
    }
    if (strcmp(scheme->name, "file") == 0 || host_at == authority_end) {
        return (size_t)(authority_end - d);
    }
    struct gate_host host;
    const char *after = host_at + gate_host_read(host_at, (size_t)(authority_end - host_at), &host);
    uint16_t port = 0;
    if (after < authority_end && *after == ':') {
        after += 1 + read_port(after + 1, authority_end, &port);
    }
    if (host.kind != GATE_HOST_NONE) {
        report(f, (size_t)(name - d), &host, GATE_URL, port, scheme->port);
    }
    return (size_t)(after - d);
}

/* Endings of files that tools print with a line: "main.py:12". */
static bool is_file_ending(const char *label)
{
    static const char *const endings[] = {
        "bak",  "bash", "bin", "c",    "cc",  "cfg", "cjs",  "conf", "cpp",   "css",  "csv", "cts",
        "dat",  "exe",  "go",  "gz",   "h",   "hpp", "html", "ini",  "ipynb", "java", "jpg", "js",
        "json", "jsx",  "kt",  "lock", "log", "lua", "md",   "mjs",  "mts",   "out",  "pdf", "php",
        "pl",   "png",  "py",  "pyc",  "rb",  "rs",  "sh",   "so",   "sql",   "svg",  "tar", "tmp",
        "toml", "ts",   "tsv", "tsx",  "txt", "xml", "yaml", "yml",  "zip"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (strcmp(label, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A dotted name whose last label is a word. */
static bool is_dotted_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name || strstr(name, "..") || name[0] == '-' || strchr(name, '\\')) {
        return false;
    }
    if (strncmp(dot + 1, "xn--", 4) == 0) {
        return true;
    }
    size_t n = 1;
    while (is_alpha(dot[n])) {
        n++;
    }
    return n > 2 && dot[n] == '\0';
}

/* Whether a host before a port is one: not a time, a ratio or a place in a file. */
static bool is_host_of_port(const struct gate_host *host, const char *p, size_t len, uint16_t port)
{
    if (host->kind == GATE_HOST_NAME) {
        const char *dot = strrchr(host->text, '.');
        return host->loopback || (is_dotted_name(host->text) && !is_file_ending(dot + 1));
    }
    size_t dots = 0;
    for (size_t i = 0; i < len; i++) {
        dots += p[i] == '.';
    }
    return dots == 3 || (dots > 0 ? port > 21 : strncmp(host->text, "0.", 2) != 0);
}

static void find_host_port(struct find *f, const struct token *t, const char *colon)
{
    uint16_t port = 0;
    struct gate_host host;
    size_t len = (size_t)(colon - t->p), digits = t->len - len - 1;
    if (digits == 0 || read_port(colon + 1, t->p + t->len, &port) != digits ||
        gate_host_read(t->p, len, &host) != len || host.kind == GATE_HOST_NONE ||
        !is_host_of_port(&host, t->p, len, port))
    {
        return;
    }
    report(f, t->at, &host, GATE_HOST_PORT, port, 0);
}

/* Whether the address is one that is assigned to anything: "a::b" is seldom one. */
static bool is_assigned(const struct al_address *a)
{
    const uint8_t *b = a->bytes;
    return a->len == 4 || b[0] >> 5 == 1 || (b[0] & 0xfe) == 0xfc || b[0] == 0xff ||
           (b[0] == 0xfe && b[1] >> 6 == 2) || memcmp(b, "\0\x64\xff\x9b", 4) == 0 ||
           (b[15] == 1 && al_address_is_loopback(a));
}

static void find_ipv6(struct find *f, const struct token *t)
{
    char text[64];
    struct al_address address;
    struct gate_host host;
    if (t->len >= sizeof text - 2) {
        return;
    }
    text[0] = '[';
    memcpy(text + 1, t->p, t->len);
    text[t->len + 1] = ']';
    text[t->len + 2] = '\0';
    if (memchr(t->p, '\0', t->len) || !al_address_parse(text, &address)) {
        return;
    }
    const char *after = t->p + t->len;
    uint16_t port = 0;
    bool bracketed = t->at > 0 && t->p[-1] == '[' && t->text_end - after > 2 && after[0] == ']';
    bool has_port = bracketed && after[1] == ':' && read_port(after + 2, t->text_end, &port) > 0;
    if (has_port || is_assigned(&address)) {
        gate_host_read(text, t->len + 2, &host);
        report(f, t->at, &host, has_port ? GATE_HOST_PORT : GATE_ADDRESS, port, 0);
    }
}

static void find_ipv4_or_name(struct find *f, const struct token *t)
{
    char text[AL_HOST_MAX + 1];
    struct al_address address;
    struct gate_host host;
    memcpy(text, t->p, t->len);
    text[t->len] = '\0';
    bool is_address = strlen(text) == t->len && al_address_parse(text, &address);
    bool whole = f->span->whole && t->at == 0 && t->p + t->len == t->text_end;
    if ((!is_address && !whole && t->len != sizeof "localhost" - 1) ||
        gate_host_read(t->p, t->len, &host) != t->len || host.kind == GATE_HOST_NONE)
    {
        return;
    }
    if (is_address || host.loopback) {
        report(f, t->at, &host, GATE_ADDRESS, 0, 0);
    } else if (whole && host.kind == GATE_HOST_NAME && is_dotted_name(host.text)) {
        report(f, t->at, &host, GATE_BARE_NAME, 0, 0);
    }
}

/* What is behind one slash is a part of a path or a version. */
static bool is_in_path(const struct token *t)
{
    return t->at > 0 && (t->p[-1] == '/' || t->p[-1] == '\\') &&
           !(t->at > 1 && t->p[-2] == t->p[-1]);
}

static void find_other(struct find *f, struct token t)
{
    while (t.len > 0 && t.p[t.len - 1] == '.') {
        t.len--;
    }
    if (t.len < 2 || t.len > AL_HOST_MAX || is_in_path(&t)) {
        return;
    }
    const char *colon = memchr(t.p, ':', t.len), *end = t.p + t.len;
    if (!colon || colon == end - 1) {
        t.len -= colon != NULL;
        find_ipv4_or_name(f, &t);
    } else if (memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
        find_ipv6(f, &t);
    } else {
        find_host_port(f, &t, colon);
    }
}

/* The shell's own way to the network: /dev/tcp/HOST/PORT. */
static bool find_device(struct find *f, const struct token *t)
{
    struct gate_host host;
    uint16_t port = 0;
    const char *after = t->p + t->len;
    if (t->at < 9 || t->p[-1] != '/' ||
        (memcmp(t->p - 9, "/dev/tcp/", 9) != 0 && memcmp(t->p - 9, "/dev/udp/", 9) != 0))
    {
        return false;
    }
    gate_host_read(t->p, t->len, &host);
    if (after < t->text_end && *after == '/') {
        read_port(after + 1, t->text_end, &port);
    }
    if (host.kind != GATE_HOST_NONE) {
        report(f, t->at, &host, GATE_HOST_PORT, port, 0);
    }
    return true;
}

static bool is_url(const struct token *t)
{
    const char *after = t->p + t->len;
    return after[-1] == ':' && t->text_end - after > 2 && (after[0] == '/' || after[0] == '\\') &&
           (after[1] == '/' || after[1] == '\\');
}

static size_t find_in_token(struct find *f, const struct token *t, uint8_t seen)
{
    size_t after = t->at + t->len;
    if (seen & COLON && is_url(t)) {
        return find_url(f, t);
    }
    if (f->span->plain || find_device(f, t)) {
        return after;
    }
    if (seen & (DOT | COLON) || (t->len == 9 && strncasecmp(t->p, "localhost", 9) == 0)) {
        find_other(f, *t);
    }
    return after;
}

void gate_find(struct gate_scan *scan, const struct gate_span *span)
{
    struct find f = {.scan = scan, .span = span};
    const char *d = span->data;
    size_t len = span->len, i = 0;
    while (i < len && !gate_is_settled(scan)) {
        while (i < len && !classes[(uint8_t)d[i]]) {
            i++;
        }
        size_t start = i;
        uint8_t seen = 0, class;
        while (i < len && (class = classes[(uint8_t)d[i]])) {
            seen |= class;
            i++;
        }
        if (i > start) {
            struct token t = {.p = d + start, .len = i - start, .at = start, .text_end = d + len};
            i = find_in_token(&f, &t, seen);
        }
    }
}
