#include "service/gate/lexer.h"

/*
 * Theory of operation: a loop that reads code until a literal begins and a literal until it ends.
 * Literals joined by `+` are one. The stack holds the literals that are open: all but the last are
 * templates of which a `${}` is being read, as code. A slash is a division behind a value and else
 * begins a regular expression. What is behind a `}` is taken for the latter; if there is no end of
 * one on the line, it was a division.
 */

struct literal {
    struct gate_open open;
    uint32_t braces; /* open around it */
    uint8_t quote;
};

struct javascript {
    struct gate_lexer *lx;
    struct literal stack[GATE_NEST_MAX];
    size_t n;
    uint32_t braces;         /* open in the code being read */
    uint64_t controls;       /* a bit for each open `(`: it follows `if` and the like */
    bool closed_control;     /* the last `)` was of such a one */
    const uint8_t *floor;    /* code before is read; how it ended is in `value` */
    bool value;              /* it was a value */
    const uint8_t *no_regex; /* before this, no regular expression ends */
};

static const bool stops_code[256] = {
    ['\n'] = true, ['"'] = true, ['\''] = true, ['`'] = true, ['/'] = true,
    ['('] = true,  [')'] = true, ['{'] = true,  ['}'] = true,
};

static const bool stops_literal[256] = {
    ['\n'] = true, ['"'] = true, ['\''] = true, ['\\'] = true, ['`'] = true, ['$'] = true,
};

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static const uint8_t *skip_line(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p != '\n' && *p != '\r' &&
           !(*p == 0xe2 && end - p > 2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9)))
    {
        p++;
    }
    return p;
}

/* Behind a comment that begins at p, or p when none does. */
static const uint8_t *skip_comment(const uint8_t *p, const uint8_t *end, uint32_t *line)
{
    if (end - p < 2 || p[0] != '/' || (p[1] != '/' && p[1] != '*')) {
        return p;
    }
    if (p[1] == '/') {
        return skip_line(p, end);
    }
    for (p += 2; p < end; p++) {
        if (*p == '*' && end - p > 1 && p[1] == '/') {
            return p + 2;
        }
        *line += *p == '\n';
    }
    return end;
}

/* The last byte of code before p that is no space, or NULL when that is before the floor. */
static const uint8_t *last_before(const struct javascript *js, const uint8_t *p)
{
    while (p > js->floor && is_space(p[-1])) {
        p--;
    }
    return p > js->floor ? p - 1 : NULL;
}

static bool is_one_of(const uint8_t *word, size_t len, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == len && memcmp(*words, word, len) == 0) {
            return true;
        }
    }
    return false;
}

/* The word that ends with `last`; its length is 0 when it is a property's name, or a long one. */
static const uint8_t *word_before(const struct javascript *js, const uint8_t *last, size_t *ret_len)
{
    const uint8_t *word = last + 1;
    while (word > js->floor && last - word < 12 && gate_is_word_char(word[-1])) {
        word--;
    }
    *ret_len = word > js->floor && word[-1] == '.' ? 0 : (size_t)(last + 1 - word);
    return word;
}

static bool follows_control(const struct javascript *js)
{
    static const char *const controls[] = {"if", "while", "for", "with", NULL};
    const uint8_t *last = last_before(js, js->lx->p);
    size_t len;
    if (!last || !gate_is_word_char(*last)) {
        return false;
    }
    const uint8_t *word = word_before(js, last, &len);
    return is_one_of(word, len, controls);
}

/* Whether the code before p ends with a value, so that a slash divides it. */
static bool ends_with_value(const struct javascript *js)
{
    static const char *const keywords[] = {"return",     "typeof", "case",  "in",   "of",
                                           "delete",     "void",   "throw", "new",  "do",
                                           "instanceof", "yield",  "await", "else", NULL};
    const uint8_t *last = last_before(js, js->lx->p);
    size_t len;
    if (!last) {
        return js->value;
    }
    if (gate_is_word_char(*last) || *last == '$') {
        const uint8_t *word = word_before(js, last, &len);
        return !is_one_of(word, len, keywords);
    }
    if (*last == '+' || *last == '-') {
        return last > js->floor && last[-1] == *last;
    }
    return *last == ']' || (*last == ')' && !js->closed_control);
}

/* Code before p is read and ended so. */
static void set_floor(struct javascript *js, bool value)
{
    js->floor = js->lx->p;
    js->value = value;
}

/* Behind the regular expression that begins at p, or p when none ends on the line. */
static const uint8_t *skip_regex(struct javascript *js)
{
    const uint8_t *p = js->lx->p, *end = js->lx->end;
    bool in_class = false;
    if (p < js->no_regex) {
        return p;
    }
    for (p++; p < end && *p != '\n' && *p != '\r'; p++) {
        if (*p == '\\' && end - p > 1 && p[1] != '\n') {
            p++;
        } else if (*p == '[' || *p == ']') {
            in_class = *p == '[';
        } else if (*p == '/' && !in_class) {
            return p + 1;
        }
    }
    js->no_regex = p;
    return js->lx->p;
}

static void read_slash(struct javascript *js)
{
    struct gate_lexer *lx = js->lx;
    bool value = ends_with_value(js);
    const uint8_t *after = skip_comment(lx->p, lx->end, &lx->line);
    if (after == lx->p && !value) {
        after = skip_regex(js);
        value = true;
    }
    if (after == lx->p) {
        lx->p++;
    } else {
        lx->p = after;
        set_floor(js, value);
    }
}

static void open_literal(struct javascript *js)
{
    struct gate_lexer *lx = js->lx;
    js->stack[js->n++] =
        (struct literal){.open = gate_text_open(lx->text), .braces = js->braces, .quote = *lx->p++};
}

static void close_literal(struct javascript *js)
{
    struct literal *lit = &js->stack[--js->n];
    gate_text_close(js->lx->text, lit->open, js->lx->scan, true);
    js->braces = lit->braces;
    set_floor(js, true);
}

/* If `+` and another literal continue the one that has just ended: reads its opening. */
static bool join_next(struct javascript *js, struct literal *lit)
{
    struct gate_lexer *lx = js->lx;
    uint32_t line = lx->line;
    bool plus = false;
    for (const uint8_t *p = lx->p; p < lx->end;) {
        const uint8_t *after = skip_comment(p, lx->end, &line);
        if (after > p) {
            p = after;
        } else if (is_space(*p)) {
            line += *p++ == '\n';
        } else if (*p == '+' && !plus) {
            plus = true;
            p++;
        } else if (plus && (*p == '"' || *p == '\'' || *p == '`')) {
            lit->quote = *p;
            lx->p = p + 1;
            lx->line = line;
            return true;
        } else {
            return false;
        }
    }
    return false;
}

/* Reads code until a literal begins, or goes on. */
static void read_code(struct javascript *js)
{
    struct gate_lexer *lx = js->lx;
    for (;;) {
        while (lx->p < lx->end && !stops_code[*lx->p]) {
            lx->p++;
        }
        if (lx->p == lx->end) {
            return;
        }
        switch (*lx->p) {
        case '\n':
            lx->line++;
            break;
        case '"':
        case '\'':
        case '`':
            open_literal(js);
            return;
        case '/':
            read_slash(js);
            continue;
        case '(':
            js->controls = js->controls << 1 | follows_control(js);
            break;
        case ')':
            js->closed_control = js->controls & 1;
            js->controls >>= 1;
            break;
        case '{':
            js->braces++;
            break;
        default:
            if (js->n > 0 && js->braces == 0) {
                lx->p++;
                return;
            }
            js->braces -= js->braces > 0;
        }
        lx->p++;
    }
}

/* `\u0041`, `\u{41}` or a pair of surrogates at p: its length, 0 when there is none. */
static size_t read_unicode(const struct gate_lexer *lx, uint32_t *ret)
{
    uint32_t low = 0;
    const uint8_t *p = lx->p + 2;
    if (gate_peek(lx, 2) == '{') {
        size_t digits = gate_read_hex(p + 1, lx->end, 8, ret);
        return digits > 0 && gate_peek(lx, 3 + digits) == '}' ? digits + 4 : 0;
    }
    if (gate_read_hex(p, lx->end, 4, ret) != 4) {
        return 0;
    }
    if (*ret >> 10 == 0xd800 >> 10 && gate_peek(lx, 6) == '\\' && gate_peek(lx, 7) == 'u' &&
        gate_read_hex(p + 6, lx->end, 4, &low) == 4 && low >> 10 == 0xdc00 >> 10)
    {
        *ret = 0x10000 + ((*ret & 0x3ff) << 10 | (low & 0x3ff));
        return 12;
    }
    return 6;
}

/* A backslash at p: puts what it stands for and goes behind it. */
static void read_escape(struct gate_lexer *lx)
{
    static const char names[] = "bfnrtv", meant[] = "\b\f\n\r\t\v";
    uint8_t c = gate_peek(lx, 1);
    uint32_t value = 0;
    size_t n = 0;
    if (c == '\n' || (c == '\r' && gate_peek(lx, 2) == '\n')) {
        lx->line++;
        lx->p += c == '\n' ? 2 : 3;
        return;
    }
    if (c == 'u') {
        n = read_unicode(lx, &value);
    } else if (c == 'x' && gate_read_hex(lx->p + 2, lx->end, 2, &value) == 2) {
        n = 4;
    } else if (c >= '0' && c <= '7') {
        n = 1 + gate_read_octal(lx->p + 1, lx->end, &value);
    }
    if (n > 0) {
        gate_text_put_char(lx->text, lx->line, value);
        lx->p += n;
        return;
    }
    const char *simple = c ? strchr(names, c) : NULL;
    lx->p++;
    if (lx->p < lx->end) {
        gate_text_put(lx->text, lx->line, simple ? (const void *)(meant + (simple - names)) : lx->p,
                      1);
        lx->p++;
    }
}

/* Reads the literal opened last until it ends or a `${` begins. True: code follows. */
static bool read_literal(struct javascript *js)
{
    struct gate_lexer *lx = js->lx;
    struct literal *lit = &js->stack[js->n - 1];
    while (lx->p < lx->end) {
        const uint8_t *run = lx->p;
        while (lx->p < lx->end && !stops_literal[*lx->p]) {
            lx->p++;
        }
        gate_put_run(lx, run);
        if (lx->p == lx->end) {
            return false;
        }
        if (*lx->p == '\\') {
            read_escape(lx);
        } else if (*lx->p == lit->quote) {
            lx->p++;
            if (!join_next(js, lit)) {
                close_literal(js);
                return true;
            }
        } else if (*lx->p == '\n' && lit->quote != '`') {
            close_literal(js);
            return true;
        } else if (*lx->p == '$' && gate_peek(lx, 1) == '{' && lit->quote == '`' &&
                   js->n < GATE_NEST_MAX) {
            gate_text_put_unknown(lx->text, lx->line);
            lx->p += 2;
            js->braces = 0;
            set_floor(js, false);
            return true;
        } else {
            gate_text_put(lx->text, lx->line, lx->p, 1);
            lx->line += *lx->p++ == '\n';
        }
    }
    return false;
}

void gate_lex_javascript(struct gate_lexer *lx)
{
    struct javascript js = {.lx = lx, .floor = lx->p, .no_regex = lx->p};
    if (gate_peek(lx, 0) == '#' && gate_peek(lx, 1) == '!') {
        lx->p = skip_line(lx->p, lx->end);
    }
    bool in_code = true;
    while (lx->p < lx->end) {
        if (in_code) {
            read_code(&js);
            in_code = false;
        } else {
            in_code = read_literal(&js);
        }
    }
    while (js.n > 0) {
        close_literal(&js);
    }
}
