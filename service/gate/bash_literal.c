#include "service/gate/lexer_bash.h"

static bool ends_delimiter(uint8_t c)
{
    return c == '\0' || c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '|' ||
           c == '(' || c == ')' || c == '<' || c == '>';
}

static void add_to_delimiter(struct bash_heredoc *doc, uint8_t c)
{
    if (doc->len < sizeof doc->delimiter) {
        doc->delimiter[doc->len] = (char)c;
    }
    doc->len++;
}

void bash_read_heredoc_start(struct bash *sh)
{
    struct gate_lexer *lx = sh->lx;
    struct bash_heredoc doc = {0};
    lx->p += 2;
    doc.tabs = gate_peek(lx, 0) == '-';
    lx->p += doc.tabs;
    while (gate_peek(lx, 0) == ' ' || gate_peek(lx, 0) == '\t') {
        lx->p++;
    }
    uint8_t quote = 0;
    for (; lx->p < lx->end && *lx->p != '\n' && (quote || !ends_delimiter(*lx->p)); lx->p++) {
        uint8_t c = *lx->p;
        if (c == quote || (!quote && (c == '"' || c == '\''))) {
            quote = quote ? 0 : c;
            doc.quoted = true;
        } else if (c == '\\' && quote != '\'' && gate_peek(lx, 1) > ' ') {
            doc.quoted = true;
            add_to_delimiter(&doc, *++lx->p);
        } else {
            add_to_delimiter(&doc, c);
        }
    }
    if ((doc.len > 0 || doc.quoted) && sh->n_heredocs < BASH_HEREDOCS_MAX) {
        sh->heredocs[sh->n_heredocs++] = doc;
    }
}

static bool is_delimiter(const struct bash_heredoc *doc, const uint8_t *line, size_t len)
{
    return len == doc->len && len <= sizeof doc->delimiter &&
           memcmp(line, doc->delimiter, len) == 0;
}

static void read_body(struct gate_lexer *lx, const struct bash_heredoc *doc)
{
    bool continued = false;
    while (lx->p < lx->end) {
        const uint8_t *eol = memchr(lx->p, '\n', (size_t)(lx->end - lx->p)) ?: lx->end;
        const uint8_t *next = eol < lx->end ? eol + 1 : eol;
        while (doc->tabs && lx->p < eol && *lx->p == '\t') {
            lx->p++;
        }
        size_t len = (size_t)(eol - lx->p);
        bool ends = !continued && is_delimiter(doc, lx->p, len);
        continued = !doc->quoted && len > 0 && eol[-1] == '\\';
        if (!ends) {
            gate_text_put(lx->text, lx->line, lx->p, continued ? len - 1 : (size_t)(next - lx->p));
        }
        lx->p = next;
        lx->line += next > eol;
        if (ends) {
            return;
        }
    }
}

void bash_read_heredocs(struct bash *sh)
{
    struct gate_lexer *lx = sh->lx;
    for (size_t i = 0; i < sh->n_heredocs; i++) {
        struct gate_open open = gate_text_open(lx->text);
        read_body(lx, &sh->heredocs[i]);
        gate_text_close(lx->text, open, lx->scan, false);
    }
    sh->n_heredocs = 0;
}

void bash_read_single_quotes(struct gate_lexer *lx)
{
    const uint8_t *run = ++lx->p;
    for (; lx->p < lx->end && *lx->p != '\''; lx->p++) {
        if (*lx->p == '\n') {
            gate_put_run(lx, run);
            run = lx->p;
            lx->line++;
        }
    }
    gate_put_run(lx, run);
    lx->p += lx->p < lx->end;
}

/* A backslash at p within $'...': puts what it stands for, returns its length. */
static size_t decode_escape(struct gate_lexer *lx)
{
    static const char names[] = "abeEfnrtv\\'\"?", meant[] = "\a\b\x1b\x1b\f\n\r\t\v\\'\"?";
    uint8_t c = gate_peek(lx, 1);
    uint32_t value = 0;
    const char *simple = c ? strchr(names, c) : NULL;
    if (simple) {
        gate_text_put(lx->text, lx->line, meant + (simple - names), 1);
        return 2;
    }
    size_t most = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, skip = 2;
    size_t digits = most > 0 ? gate_read_hex(lx->p + 2, lx->end, most, &value) : 0;
    if (c >= '0' && c <= '7') {
        skip = 1;
        digits = gate_read_octal(lx->p + 1, lx->end, &value);
    }
    if (digits > 0) {
        gate_text_put_char(lx->text, lx->line, value);
        return skip + digits;
    }
    gate_text_put(lx->text, lx->line, lx->p, 1);
    return 1;
}

void bash_read_ansi_quotes(struct gate_lexer *lx)
{
    lx->p += 2;
    while (lx->p < lx->end && *lx->p != '\'') {
        if (*lx->p == '\\') {
            lx->p += decode_escape(lx);
            continue;
        }
        gate_text_put(lx->text, lx->line, lx->p, 1);
        lx->line += *lx->p++ == '\n';
    }
    lx->p += lx->p < lx->end;
}
