#include "service/gate/host.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <idn2.h>

#include "service/gate/find.h"
#include "service/gate/text.h"

#define RAW_MAX         1024 /* decoded bytes that may still become a name of AL_HOST_MAX */
#define PLACEHOLDER_MAX 64

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_name_char(char c)
{
    return is_alnum(c) || c == '-' || c == '_' || c == '.' || (uint8_t)c >= 0x80;
}

/* `{name}`, `${name}`, `$name`, `%s`, `*`, or what a lexer put: its length, or 0. */
static size_t read_unknown(const char *p, size_t n)
{
    size_t i = p[0] == '$' ? 1 : 0;
    if (p[0] == GATE_UNKNOWN || p[0] == '*') {
        return 1;
    }
    if (p[0] == '%') {
        return n > 1 && p[1] && strchr("sdriv", p[1]) ? 2 : 0;
    }
    if (i < n && p[i] == '{') {
        size_t most = n < PLACEHOLDER_MAX ? n : PLACEHOLDER_MAX;
        const char *close = memchr(p, '}', most);
        return close ? (size_t)(close - p) + 1 : 0;
    }
    while (i > 0 && i < n && (is_alnum(p[i]) || p[i] == '_')) {
        i++;
    }
    return i > 1 ? i : 0;
}

/* Undoes percent-encoding; returns how much was read. What does not fit in `raw` is dropped. */
static size_t decode(const char *p, size_t n, char *raw, size_t *ret_len)
{
    size_t i = 0, len = 0;
    while (i < n) {
        uint32_t value = 0;
        size_t take = 1;
        char c = p[i];
        if (c == '%' &&
            gate_read_hex((const uint8_t *)p + i + 1, (const uint8_t *)p + n, 2, &value) == 2) {
            c = (char)value;
            take = 3;
        } else if (!is_name_char(c)) {
            take = read_unknown(p + i, n - i);
            c = '*';
        }
        if (take == 0) {
            break;
        }
        i += take;
        if (len < RAW_MAX) {
            raw[len++] = c;
        }
    }
    *ret_len = len;
    return i;
}

static bool is_ascii(const char *raw, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((uint8_t)raw[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

/* Copies what may stand in a host's text and writes the rest as \xNN, so that it still is judged.
 * False: too long to be a host. */
static bool copy_text(const char *raw, size_t len, char text[AL_HOST_MAX + 1])
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool fits = (is_name_char(raw[i]) && (uint8_t)raw[i] < 0x80) || raw[i] == '*';
        if (n + 4 > AL_HOST_MAX && (!fits || n == AL_HOST_MAX)) {
            return false;
        }
        if (fits) {
            text[n++] = (char)(raw[i] >= 'A' && raw[i] <= 'Z' ? raw[i] | 0x20 : raw[i]);
        } else {
            (void)snprintf(text + n, 5, "\\x%02x", (uint8_t)raw[i]);
            n += 4;
        }
    }
    text[n] = '\0';
    return true;
}

/* To A-labels where there is anything else; `raw` is terminated. */
static bool to_ascii(const char *raw, size_t len, char text[AL_HOST_MAX + 1])
{
    char *labels = NULL;
    if (is_ascii(raw, len) || memchr(raw, '\0', len) ||
        idn2_lookup_u8((const uint8_t *)raw, (uint8_t **)&labels,
                       IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK)
    {
        return copy_text(raw, len, text);
    }
    bool ok = copy_text(labels, strlen(labels), text);
    idn2_free(labels);
    return ok;
}

/* As inet_aton reads it: one to four parts, each decimal, octal or hexadecimal. */
static bool read_ipv4(const char *s, struct al_address *ret)
{
    uint32_t value = 0;
    for (unsigned part = 0; part < 4; part++) {
        char *end = (char *)s;
        unsigned long long n = *s >= '0' && *s <= '9' ? strtoull(s, &end, 0) : ULLONG_MAX;
        if (n > (*end == '\0' ? UINT32_MAX >> (8 * part) : UINT8_MAX)) {
            return false;
        }
        if (*end == '\0') {
            value |= (uint32_t)n;
            *ret = (struct al_address){.len = 4};
            for (unsigned i = 0; i < 4; i++) {
                ret->bytes[i] = (uint8_t)(value >> (24 - 8 * i));
            }
            return true;
        }
        if (*end != '.') {
            return false;
        }
        value |= (uint32_t)n << (24 - 8 * part);
        s = end + 1;
    }
    return false;
}

static void set_address(struct gate_host *host, const struct al_address *address)
{
    inet_ntop(address->len == 4 ? AF_INET : AF_INET6, address->bytes, host->text,
              sizeof host->text);
    host->kind = GATE_HOST_ADDRESS;
    host->loopback = al_address_is_loopback(address);
}

static size_t read_bracketed(const char *p, size_t n, struct gate_host *ret)
{
    char inner[64];
    struct al_address address;
    const char *close = memchr(p, ']', n < sizeof inner ? n : sizeof inner);
    if (!close) {
        return 1;
    }
    size_t len = (size_t)(close - p) - 1;
    memcpy(inner, p + 1, len);
    inner[len] = '\0';
    if (strlen(inner) == len && al_address_parse(inner, &address)) {
        set_address(ret, &address);
    }
    return len + 2;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t len = strlen(text), n = strlen(tail);
    return len >= n && strcmp(text + len - n, tail) == 0;
}

static bool is_localhost(const char *name)
{
    return strcmp(name, "localhost") == 0 || ends_with(name, ".localhost") ||
           strcmp(name, "localhost.localdomain") == 0;
}

/* An unknown end is most often a path or a port behind a whole name; not if the name is cut within
 * a label that counts. */
static bool trim_end(char *text)
{
    size_t len = strlen(text), known = len;
    while (known > 0 && text[known - 1] == '*') {
        known--;
    }
    if (known < len && (known == 0 || !memchr(text, '.', known) || text[known - 1] == '.' ||
                        text[known - 1] == '-'))
    {
        return false;
    }
    while (known > 0 && text[known - 1] == '.') {
        known--;
    }
    text[known] = '\0';
    return known > 0;
}

static bool has_name(const char *text)
{
    for (; *text; text++) {
        if (is_alnum(*text) || *text == '\\') {
            return true;
        }
    }
    return false;
}

size_t gate_host_read(const char *p, size_t n, struct gate_host *ret)
{
    char raw[RAW_MAX + 1];
    size_t len = 0;
    struct al_address address;
    ret->kind = GATE_HOST_NONE;
    ret->loopback = false;
    if (n > 0 && p[0] == '[') {
        return read_bracketed(p, n, ret);
    }
    size_t taken = decode(p, n, raw, &len);
    raw[len] = '\0';
    if (!to_ascii(raw, len, ret->text) || !trim_end(ret->text) || !has_name(ret->text)) {
        return taken;
    }
    if (read_ipv4(ret->text, &address)) {
        set_address(ret, &address);
    } else {
        ret->kind = GATE_HOST_NAME;
        ret->loopback = is_localhost(ret->text);
    }
    return taken;
}
