#include "service/gate/gate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "backends/api/backend.h"
#include "backends/base/cleanup.h"
#include "backends/base/err.h"
#include "backends/base/host_match.h"
#include "service/gate/lexer.h"
#include "service/quote.h"

static const struct {
    const char *name; /* of a language, or an extension */
    gate_lex_fn *lex;
} lexers[] = {
    {"python", gate_lex_python},
    {".py", gate_lex_python},
    {".pyw", gate_lex_python},
    {"javascript", gate_lex_javascript},
    {"typescript", gate_lex_javascript},
    {".js", gate_lex_javascript},
    {".mjs", gate_lex_javascript},
    {".cjs", gate_lex_javascript},
    {".jsx", gate_lex_javascript},
    {".ts", gate_lex_javascript},
    {".mts", gate_lex_javascript},
    {".cts", gate_lex_javascript},
    {".tsx", gate_lex_javascript},
    {"bash", gate_lex_bash},
    {".sh", gate_lex_bash},
    {".bash", gate_lex_bash},
};

static gate_lex_fn *find_lexer(const char *name)
{
    for (size_t i = 0; i < sizeof lexers / sizeof lexers[0]; i++) {
        if (strcasecmp(lexers[i].name, name) == 0) {
            return lexers[i].lex;
        }
    }
    return NULL;
}

static gate_lex_fn *lexer_of_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? find_lexer(dot) : NULL;
}

static gate_lex_fn *lexer_of_language(const struct al_language *language)
{
    return find_lexer(language->name)
               ?: (language->code_file ? lexer_of_file(language->code_file) : NULL)
               ?: gate_lex_plain;
}

void gate_lex_plain(struct gate_lexer *lx)
{
    while (lx->p < lx->end && !gate_is_settled(lx->scan)) {
        const uint8_t *eol = memchr(lx->p, '\n', (size_t)(lx->end - lx->p)) ?: lx->end;
        const struct gate_mark mark = {.offset = 0, .line = lx->line};
        gate_find(lx->scan, &(struct gate_span){.data = (const char *)lx->p,
                                                .len = (size_t)(eol - lx->p),
                                                .marks = &mark,
                                                .n_marks = 1,
                                                .plain = true});
        lx->p = eol < lx->end ? eol + 1 : eol;
        lx->line++;
    }
}

static void read_source(struct gate_scan *scan, struct gate_text *text, gate_lex_fn *lex,
                        const char *file, struct al_bytes source)
{
    if (source.len == 0 || gate_is_settled(scan)) {
        return;
    }
    struct gate_lexer lx = {.scan = scan,
                            .text = text,
                            .start = source.data,
                            .p = source.data,
                            .end = source.data + source.len,
                            .line = 1};
    scan->file = file;
    lex(&lx);
}

static void read_all(struct gate_scan *scan, struct gate_text *text)
{
    const struct al_job_spec *spec = scan->spec;
    read_source(scan, text, lexer_of_language(spec->language), NULL, spec->code);
    for (size_t i = 0; i < spec->n_files; i++) {
        gate_lex_fn *lex = lexer_of_file(spec->files[i].path);
        if (lex) {
            read_source(scan, text, lex, spec->files[i].path, spec->files[i].content);
        }
    }
}

static size_t longest_source(const struct al_job_spec *spec)
{
    size_t longest = spec->code.len;
    for (size_t i = 0; i < spec->n_files; i++) {
        if (spec->files[i].content.len > longest && lexer_of_file(spec->files[i].path)) {
            longest = spec->files[i].content.len;
        }
    }
    return longest;
}

int al_gate_scan(const struct al_job_spec *spec, struct al_arena *arena, struct al_gate_report *ret)
{
    struct gate_scan scan = {.spec = spec, .arena = arena};
    AL_CLEANUP(gate_text_finish) struct gate_text text;
    if (gate_text_init(&text, longest_source(spec)) < 0) {
        return -ENOMEM;
    }
    read_all(&scan, &text);
    if (scan.out_of_memory || text.failed) {
        return -ENOMEM;
    }
    *ret = (struct al_gate_report){
        .findings = scan.findings, .n = scan.n, .block = scan.block, .truncated = scan.truncated};
    return 0;
}

void al_gate_explain(const struct al_gate_finding *finding, char *to, size_t size)
{
    char line[AL_HOST_MAX + sizeof(struct al_quoted) + 80];
    (void)snprintf(line, sizeof line, "egress to %s is not allowed (line %u of %s, rule %s)",
                   finding->host, finding->line,
                   finding->file ? al_quote_bare(finding->file).text : "the code", finding->rule);
    al_err_copy_text(to, size, line);
}
