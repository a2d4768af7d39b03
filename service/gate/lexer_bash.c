#include "service/gate/lexer_bash.h"

/*
 * Theory of operation: a stack of what is open, the last of which is read. A word is one literal
 * whatever quotes it is made of; so is the content of `${}`, and the body of a here-document. What
 * expands to something is unknown within the word around it. Only words know comments, and only
 * where a word may begin; `((` hides comments and here-documents until its `)`.
 */

static const bool stops_words[256] = {
    ['\n'] = true, [' '] = true, ['\t'] = true, [';'] = true, ['&'] = true,  ['|'] = true,
    ['('] = true,  [')'] = true, ['<'] = true,  ['>'] = true, ['\''] = true, ['"'] = true,
    ['\\'] = true, ['$'] = true, ['`'] = true,  ['#'] = true,
};

static const bool stops_quotes[256] = {
    ['\n'] = true, ['"'] = true, ['\\'] = true, ['$'] = true, ['`'] = true,
};

static const bool stops_braces[256] = {
    ['\n'] = true, ['"'] = true, ['\\'] = true, ['$'] = true,
    ['`'] = true,  ['}'] = true, ['\''] = true,
};

static struct bash_frame *top(struct bash *sh)
{
    return &sh->stack[sh->n - 1];
}

static void put_byte(struct gate_lexer *lx)
{
    gate_text_put(lx->text, lx->line, lx->p, 1);
    lx->line += *lx->p++ == '\n';
}

/* Opens a frame behind `skip` bytes; if there are too many, one byte is text. */
static void push(struct bash *sh, enum bash_kind kind, uint8_t end, size_t skip)
{
    if (sh->n == GATE_NEST_MAX) {
        put_byte(sh->lx);
        return;
    }
    sh->lx->p += skip;
    sh->stack[sh->n++] = (struct bash_frame){
        .kind = kind,
        .open = kind == BASH_QUOTES ? (struct gate_open){0} : gate_text_open(sh->lx->text),
        .end = end,
        .command = true};
}

static bool is_word(const struct bash *sh, const struct bash_frame *f, const char *word)
{
    const struct gate_text *text = sh->lx->text;
    size_t len = strlen(word);
    return text->len - f->open.start == len && memcmp(text->data + f->open.start, word, len) == 0;
}

/* Keeps count of `case`; true when a command may follow the word. */
static bool is_command_next(const struct bash *sh, struct bash_frame *f)
{
    static const char *const keywords[] = {"then",  "do",    "else", "elif", "if",
                                           "while", "until", "!",    "{",    "time"};
    if (is_word(sh, f, "case")) {
        f->n_cases++;
    } else if (is_word(sh, f, "esac")) {
        f->n_cases -= f->n_cases > 0;
    }
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        if (is_word(sh, f, keywords[i])) {
            return true;
        }
    }
    return false;
}

static void end_word(struct bash *sh)
{
    struct bash_frame *f = top(sh);
    if (!f->in_word) {
        return;
    }
    f->command = f->command && !f->quoted && is_command_next(sh, f);
    gate_text_close(sh->lx->text, f->open, sh->lx->scan, f->quoted);
    f->open = gate_text_open(sh->lx->text);
    f->in_word = f->quoted = false;
}

static void end_frame(struct bash *sh)
{
    struct bash_frame *f = top(sh);
    if (f->kind == BASH_WORDS) {
        end_word(sh);
    } else if (f->kind == BASH_BRACES) {
        gate_text_close(sh->lx->text, f->open, sh->lx->scan, false);
    }
    sh->n--;
}

/* The end of something that expands, `skip` bytes long. */
static void end_expansion(struct bash *sh, size_t skip)
{
    end_frame(sh);
    sh->lx->p += skip;
    gate_text_put_unknown(sh->lx->text, sh->lx->line);
}

static bool is_special(uint8_t c)
{
    return c && strchr("@*#?-$!", c);
}

/* `$` at p. `quotes`: what may be quoted is not, since it already is. */
static void read_dollar(struct bash *sh, bool quotes)
{
    struct gate_lexer *lx = sh->lx;
    uint8_t c = gate_peek(lx, 1);
    if (c == '(') {
        bool arith = gate_peek(lx, 2) == '(';
        size_t n = sh->n;
        push(sh, BASH_WORDS, ')', arith ? 3 : 2);
        if (sh->n > n && arith) {
            top(sh)->parens = top(sh)->arith = 1;
        }
    } else if (c == '{') {
        push(sh, BASH_BRACES, '}', 2);
    } else if (c == '\'' && !quotes) {
        bash_read_ansi_quotes(lx);
    } else if (c == '"' && !quotes) {
        push(sh, BASH_QUOTES, '"', 2);
    } else if (gate_is_word_char(c) || is_special(c)) {
        bool name = c > '9';
        lx->p += 2;
        while (name && gate_is_word_char(gate_peek(lx, 0)) && gate_peek(lx, 0) < 0x80) {
            lx->p++;
        }
        gate_text_put_unknown(lx->text, lx->line);
    } else {
        put_byte(lx);
    }
}

/* `\` at p, where any character may follow, or only one of `special`. */
static void read_backslash(struct gate_lexer *lx, const char *special)
{
    uint8_t c = gate_peek(lx, 1);
    if (c == '\n') {
        lx->p += 2;
        lx->line++;
        return;
    }
    if (c && (!special || strchr(special, c))) {
        lx->p++;
    }
    put_byte(lx);
}

static void read_opening_paren(struct bash *sh, struct bash_frame *f)
{
    struct gate_lexer *lx = sh->lx;
    bool arith = gate_peek(lx, 1) == '(' && f->arith == 0;
    f->parens++;
    if (arith) {
        f->arith = f->parens;
    }
    f->command = true;
    lx->p++;
}

/* `)` at p. True: it ended the frame. */
static bool read_closing_paren(struct bash *sh, struct bash_frame *f)
{
    if (f->parens == 0 && f->end == ')' && f->n_cases == 0) {
        end_expansion(sh, 1);
        return true;
    }
    f->arith = f->parens <= f->arith ? 0 : f->arith;
    f->parens -= f->parens > 0;
    f->command = true;
    sh->lx->p++;
    return false;
}

static void read_line_end(struct bash *sh, struct bash_frame *f)
{
    sh->lx->p++;
    sh->lx->line++;
    f->command = true;
    bash_read_heredocs(sh);
    f->open = gate_text_open(sh->lx->text);
}

static void read_less_than(struct bash *sh, const struct bash_frame *f)
{
    struct gate_lexer *lx = sh->lx;
    if (gate_peek(lx, 1) != '<' || f->arith > 0) {
        lx->p++;
    } else if (gate_peek(lx, 2) == '<') {
        lx->p += 3;
    } else {
        bash_read_heredoc_start(sh);
    }
}

/* At what ends a word or stands between words. True: it ended the frame. */
static bool read_between(struct bash *sh, struct bash_frame *f)
{
    end_word(sh);
    switch (*sh->lx->p) {
    case '\n':
        read_line_end(sh, f);
        return false;
    case '(':
        read_opening_paren(sh, f);
        return false;
    case ')':
        return read_closing_paren(sh, f);
    case '<':
        read_less_than(sh, f);
        return false;
    case ';':
    case '&':
    case '|':
        f->command = true;
    }
    sh->lx->p++;
    return false;
}

static void read_hash(struct bash *sh, struct bash_frame *f)
{
    struct gate_lexer *lx = sh->lx;
    if (f->in_word || f->arith > 0) {
        f->in_word = true;
        put_byte(lx);
        return;
    }
    lx->p = memchr(lx->p, '\n', (size_t)(lx->end - lx->p)) ?: lx->end;
}

static bool read_backtick(struct bash *sh, struct bash_frame *f)
{
    if (f->kind == BASH_WORDS && f->end == '`') {
        end_expansion(sh, 1);
        return true;
    }
    f->in_word = true;
    push(sh, BASH_WORDS, '`', 1);
    return true;
}

/* Reads words until another frame is the last. */
static void read_words(struct bash *sh)
{
    struct gate_lexer *lx = sh->lx;
    struct bash_frame *f = top(sh);
    size_t n = sh->n;
    while (lx->p < lx->end && sh->n == n) {
        const uint8_t *run = lx->p;
        while (lx->p < lx->end && !stops_words[*lx->p]) {
            lx->p++;
        }
        f->in_word |= lx->p > run;
        gate_put_run(lx, run);
        switch (gate_peek(lx, 0)) {
        case '\'':
            f->in_word = f->quoted = true;
            bash_read_single_quotes(lx);
            break;
        case '"':
            f->in_word = f->quoted = true;
            push(sh, BASH_QUOTES, '"', 1);
            break;
        case '\\':
            f->in_word |= gate_peek(lx, 1) != '\n';
            read_backslash(lx, NULL);
            break;
        case '$':
            f->in_word = true;
            f->quoted |= gate_peek(lx, 1) == '\'' || gate_peek(lx, 1) == '"';
            read_dollar(sh, false);
            break;
        case '`':
            read_backtick(sh, f);
            break;
        case '#':
            read_hash(sh, f);
            break;
        default:
            if (lx->p < lx->end) {
                read_between(sh, f);
            }
        }
    }
}

/* Reads the content of quotes or braces until another frame is the last. */
static void read_quoted(struct bash *sh)
{
    struct gate_lexer *lx = sh->lx;
    struct bash_frame *f = top(sh);
    const bool *stops = f->kind == BASH_QUOTES ? stops_quotes : stops_braces;
    bool quotes = f->kind == BASH_QUOTES || f[-1].kind == BASH_QUOTES;
    size_t n = sh->n;
    while (lx->p < lx->end && sh->n == n) {
        const uint8_t *run = lx->p;
        while (lx->p < lx->end && !stops[*lx->p]) {
            lx->p++;
        }
        gate_put_run(lx, run);
        uint8_t c = gate_peek(lx, 0);
        if (lx->p == lx->end) {
            return;
        }
        if (c == f->end && f->kind == BASH_QUOTES) {
            end_frame(sh);
            lx->p++;
        } else if (c == f->end) {
            end_expansion(sh, 1);
        } else if (c == '"') {
            push(sh, BASH_QUOTES, '"', 1);
        } else if (c == '\'' && !quotes) {
            bash_read_single_quotes(lx);
        } else if (c == '\\') {
            read_backslash(lx, quotes ? "$`\"\\}" : NULL);
        } else if (c == '$') {
            read_dollar(sh, quotes);
        } else if (c == '`') {
            read_backtick(sh, f);
        } else {
            put_byte(lx);
        }
    }
}

void gate_lex_bash(struct gate_lexer *lx)
{
    struct bash sh = {.lx = lx};
    push(&sh, BASH_WORDS, 0, 0);
    while (lx->p < lx->end) {
        if (top(&sh)->kind == BASH_WORDS) {
            read_words(&sh);
        } else {
            read_quoted(&sh);
        }
    }
    while (sh.n > 0) {
        end_frame(&sh);
    }
}
