/*
 * A lexer for each family of languages: finds the literals of a source, decodes them and hands them
 * to the finder. Lexers take any bytes; on what the language would refuse they guess, and read on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/gate/text.h"

/* How deep literals may nest in each other; a deeper one is read as plain text. */
#define GATE_NEST_MAX 64

struct gate_lexer {
    struct gate_scan *scan;
    struct gate_text *text;
    const uint8_t *start;
    const uint8_t *p; /* where reading goes on */
    const uint8_t *end;
    uint32_t line; /* of p */
};

typedef void gate_lex_fn(struct gate_lexer *lx);

gate_lex_fn gate_lex_python;
gate_lex_fn gate_lex_javascript; /* TypeScript too */
gate_lex_fn gate_lex_bash;
gate_lex_fn gate_lex_plain;

static inline bool gate_is_word_char(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c >= 0x80;
}

/* The byte `ahead` of p; 0 behind the end. */
static inline uint8_t gate_peek(const struct gate_lexer *lx, size_t ahead)
{
    return ahead < (size_t)(lx->end - lx->p) ? lx->p[ahead] : 0;
}

/* Puts the bytes from `from` up to p. */
static inline void gate_put_run(struct gate_lexer *lx, const uint8_t *from)
{
    gate_text_put(lx->text, lx->line, from, (size_t)(lx->p - from));
}
