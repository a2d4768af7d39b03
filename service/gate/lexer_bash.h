/*
 * What the parts of the Bash lexer share.
 */
#pragma once

#include "service/gate/lexer.h"

enum bash_kind {
    BASH_WORDS,  /* commands: the script, $( ), ` `, also what stands in ( ) and (( )) */
    BASH_QUOTES, /* " ", whose content belongs to the word or braces around it */
    BASH_BRACES, /* ${ } */
};

struct bash_frame {
    enum bash_kind kind;
    struct gate_open open; /* of the word or braces being read */
    uint8_t end;           /* WORDS: `)`, '`', or 0 for the script */
    bool in_word;
    bool quoted;      /* a part of the word is */
    bool command;     /* the next word may be a keyword */
    uint32_t parens;  /* open within it */
    uint32_t arith;   /* the value of `parens` at the `((` that is open; 0: none */
    uint32_t n_cases; /* `case` without its `esac`, where `)` ends a pattern */
};

#define BASH_HEREDOCS_MAX  16
#define BASH_DELIMITER_MAX 256

/* A here-document whose body begins on the next line. */
struct bash_heredoc {
    char delimiter[BASH_DELIMITER_MAX]; /* without its quotes */
    size_t len;                         /* as long as it was; above the maximum nothing ends it */
    bool quoted;                        /* nothing is expanded */
    bool tabs;                          /* leading tabs do not count */
};

struct bash {
    struct gate_lexer *lx;
    struct bash_frame stack[GATE_NEST_MAX];
    size_t n;
    struct bash_heredoc heredocs[BASH_HEREDOCS_MAX];
    size_t n_heredocs;
};

/* `<<` at p: reads it and its delimiter. */
void bash_read_heredoc_start(struct bash *sh);

/* The bodies of all that were started, from p on, which begins a line. */
void bash_read_heredocs(struct bash *sh);

/* `$'` at p: reads to its end. */
void bash_read_ansi_quotes(struct gate_lexer *lx);

/* `'` at p likewise. */
void bash_read_single_quotes(struct gate_lexer *lx);
