#include "service/gate/lexer.h"

/*
 * Theory of operation: a loop that reads code until a literal begins and a literal until it ends.
 * Literals joined by juxtaposition or `+` are one. The stack holds the literals that are open: all
 * but the last are format strings of which a replacement field is being read, as code. Within a
 * field, brackets count from zero; at zero, `}` ends it and `:` begins its format, which is read
 * like a literal but not kept.
 */

struct literal {
    struct gate_open open;
    uint32_t depth; /* brackets open around it */
    uint8_t quote;
    bool triple;
    bool raw;
    bool bytes;
    bool format;  /* has replacement fields */
    bool in_spec; /* in the format of a field */
};

struct python {
    struct gate_lexer *lx;
    struct literal stack[GATE_NEST_MAX];
    size_t n;
    uint32_t depth; /* brackets open in the code being read */
};

static const bool stops_code[256] = {
    ['\n'] = true, ['"'] = true, ['\''] = true, ['#'] = true, ['('] = true, ['['] = true,
    ['{'] = true,  [')'] = true, [']'] = true,  ['}'] = true, [':'] = true,
};

static const bool stops_literal[256] = {
    ['\n'] = true, ['"'] = true, ['\''] = true, ['\\'] = true, ['{'] = true, ['}'] = true,
};

static const uint8_t *skip_comment(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p != '\n' && *p != '\r') {
        p++;
    }
    return p;
}

/* Sets the kind of literal that begins with this prefix and quote; returns its first byte. */
static const uint8_t *read_opening(struct python *py, struct literal *lit, const uint8_t *prefix,
                                   const uint8_t *quote)
{
    lit->raw = lit->bytes = lit->format = lit->in_spec = false;
    for (const uint8_t *p = prefix; p < quote; p++) {
        uint8_t c = *p | 0x20;
        lit->raw |= c == 'r';
        lit->bytes |= c == 'b';
        lit->format |= (c == 'f' || c == 't') && py->n < GATE_NEST_MAX;
    }
    lit->quote = *quote;
    lit->triple = py->lx->end - quote > 2 && quote[1] == *quote && quote[2] == *quote;
    return quote + (lit->triple ? 3 : 1);
}

static bool is_prefix(uint8_t c)
{
    c |= 0x20;
    return c == 'r' || c == 'b' || c == 'u' || c == 'f' || c == 't';
}

/* A quote at p, in code. */
static void open_literal(struct python *py)
{
    struct gate_lexer *lx = py->lx;
    const uint8_t *prefix = lx->p;
    while (prefix > lx->start && lx->p - prefix < 2 && is_prefix(prefix[-1])) {
        prefix--;
    }
    if (prefix > lx->start && gate_is_word_char(prefix[-1])) {
        prefix = lx->p;
    }
    struct literal *lit = &py->stack[py->n++];
    *lit = (struct literal){.open = gate_text_open(lx->text), .depth = py->depth};
    lx->p = read_opening(py, lit, prefix, lx->p);
}

/* If another literal continues the one that has just ended: reads its opening. */
static bool join_next(struct python *py, struct literal *lit)
{
    struct gate_lexer *lx = py->lx;
    bool across_lines = lit->depth > 0 || py->n > 1, plus = false;
    uint32_t line = lx->line;
    for (const uint8_t *p = lx->p; p < lx->end; p++) {
        if (*p == '\n' && across_lines) {
            line++;
        } else if (*p == '#' && across_lines) {
            p = skip_comment(p, lx->end) - 1;
        } else if (*p == '\\' && lx->end - p > 1 && p[1] == '\n') {
            p++;
            line++;
        } else if (*p == '+' && !plus) {
            plus = true;
        } else if (*p != ' ' && *p != '\t' && *p != '\f' && *p != '\r') {
            const uint8_t *quote = p;
            while (quote - p < 2 && quote < lx->end && is_prefix(*quote)) {
                quote++;
            }
            if (quote == lx->end || (*quote != '"' && *quote != '\'')) {
                return false;
            }
            lx->p = read_opening(py, lit, p, quote);
            lx->line = line;
            return true;
        }
    }
    return false;
}

static void close_literal(struct python *py)
{
    struct literal *lit = &py->stack[--py->n];
    gate_text_close(py->lx->text, lit->open, py->lx->scan, true);
    py->depth = lit->depth;
}

/* Reads code until a literal begins, or goes on. */
static void read_code(struct python *py)
{
    struct gate_lexer *lx = py->lx;
    for (;; lx->p++) {
        while (lx->p < lx->end && !stops_code[*lx->p]) {
            lx->p++;
        }
        if (lx->p == lx->end) {
            return;
        }
        bool ends_field = py->n > 0 && py->depth == 0;
        switch (*lx->p) {
        case '\n':
            lx->line++;
            break;
        case '#':
            lx->p = skip_comment(lx->p, lx->end) - 1;
            break;
        case '"':
        case '\'':
            open_literal(py);
            return;
        case ':':
            if (ends_field) {
                py->stack[py->n - 1].in_spec = true;
                lx->p++;
                return;
            }
            break;
        case '(':
        case '[':
        case '{':
            py->depth++;
            break;
        default:
            if (ends_field && *lx->p == '}') {
                lx->p++;
                return;
            }
            py->depth -= py->depth > 0;
        }
    }
}

/* `\N{...}` stays as it is, and its brace begins no field. */
static size_t read_named(const struct gate_lexer *lx)
{
    size_t n = 2;
    while (n < 90 && gate_peek(lx, n) >= ' ' && gate_peek(lx, n) != '}' && gate_peek(lx, n) != '"')
    {
        n++;
    }
    return gate_peek(lx, 2) == '{' && gate_peek(lx, n) == '}' ? n + 1 : 2;
}

/* A backslash at p, in a literal that is not raw: what it stands for is put, its length returned.
 */
static size_t decode_escape(struct gate_lexer *lx, const struct literal *lit)
{
    static const char names[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
    uint8_t c = gate_peek(lx, 1);
    uint32_t value = 0;
    size_t digits = 0, most = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, skip = 2;
    const char *simple = c ? strchr(names, c) : NULL;
    if (simple) {
        gate_text_put(lx->text, lx->line, meant + (simple - names), 1);
        return 2;
    }
    if (c == '\r' && gate_peek(lx, 2) == '\n') {
        lx->line++;
        return 3;
    }
    if (c == '\n') {
        lx->line++;
        return 2;
    }
    if (most > 0 && (!lit->bytes || most == 2)) {
        digits = gate_read_hex(lx->p + 2, lx->end, most, &value);
    } else if (c >= '0' && c <= '7') {
        skip = 1;
        digits = most = gate_read_octal(lx->p + 1, lx->end, &value);
    }
    if (digits > 0 && digits == most) {
        gate_text_put_char(lx->text, lx->line, value);
        return skip + digits;
    }
    size_t n = c == 'N' ? read_named(lx) : 1;
    gate_text_put(lx->text, lx->line, lx->p, n);
    return n;
}

static void read_backslash(struct gate_lexer *lx, const struct literal *lit)
{
    if (!lit->raw) {
        lx->p += decode_escape(lx, lit);
        return;
    }
    size_t n = lx->end - lx->p > 1 ? 2 : 1;
    gate_text_put(lx->text, lx->line, lx->p, n);
    lx->line += gate_peek(lx, 1) == '\n';
    lx->p += n;
}

/* `{` or `}` at p, in a format string. True: code follows. */
static bool read_brace(struct python *py, struct literal *lit)
{
    struct gate_lexer *lx = py->lx;
    uint8_t c = *lx->p++;
    if (c == '}' && lit->in_spec) {
        lit->in_spec = false;
        return false;
    }
    if (lx->p < lx->end && *lx->p == c && !lit->in_spec) {
        gate_text_put(lx->text, lx->line, lx->p++, 1);
        return false;
    }
    if (c == '{') {
        gate_text_put_unknown(lx->text, lx->line);
        py->depth = 0;
        return true;
    }
    return false;
}

/* A quote or line end at p. True: the literal is over. */
static bool ends_literal(struct gate_lexer *lx, const struct literal *lit)
{
    if (*lx->p == '\n' || *lx->p != lit->quote) {
        return *lx->p == '\n' && !lit->triple;
    }
    if (lit->triple && (gate_peek(lx, 1) != lit->quote || gate_peek(lx, 2) != lit->quote)) {
        return false;
    }
    lx->p += lit->triple ? 3 : 1;
    return true;
}

/* Reads the literal opened last until it ends or a field begins. True: code follows. */
static bool read_literal(struct python *py)
{
    struct gate_lexer *lx = py->lx;
    struct literal *lit = &py->stack[py->n - 1];
    while (lx->p < lx->end) {
        const uint8_t *run = lx->p;
        while (lx->p < lx->end && !stops_literal[*lx->p]) {
            lx->p++;
        }
        if (!lit->in_spec) {
            gate_put_run(lx, run);
        }
        if (lx->p == lx->end) {
            return false;
        }
        if (*lx->p == '\\') {
            read_backslash(lx, lit);
        } else if (lit->format && (*lx->p == '{' || *lx->p == '}')) {
            if (read_brace(py, lit)) {
                return true;
            }
        } else if (ends_literal(lx, lit)) {
            if (lx->p[-1] != lit->quote || !join_next(py, lit)) {
                close_literal(py);
                return true;
            }
        } else {
            gate_text_put(lx->text, lx->line, lx->p, 1);
            lx->line += *lx->p++ == '\n';
        }
    }
    return false;
}

void gate_lex_python(struct gate_lexer *lx)
{
    struct python py = {.lx = lx};
    bool in_code = true;
    while (lx->p < lx->end) {
        if (in_code) {
            read_code(&py);
            in_code = false;
        } else {
            in_code = read_literal(&py);
        }
    }
    while (py.n > 0) {
        close_literal(&py);
    }
}
