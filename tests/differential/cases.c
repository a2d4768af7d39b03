#include "tests/differential/cases.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cleanup.h"

struct word {
    char *text; /* NUL-terminated; may hold NULs */
    size_t len;
};

struct line {
    struct word word[WORDS_MAX];
    size_t n;
};

/* Where in which file, for messages. */
struct place {
    const char *path;
    int line;
};

static _Noreturn void fail(const struct place *at, const char *why)
{
    fprintf(stderr, "%s:%d: %s\n", at->path, at->line, why);
    exit(EXIT_FAILURE);
}

static void *allocate(const struct place *at, size_t n)
{
    void *p = malloc(n);
    if (!p) {
        fail(at, "out of memory");
    }
    return p;
}

/* --- words --- */

static char unescape(const struct place *at, char **from)
{
    char c = *(*from)++;
    char hex[3] = "";
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case '"':
    case '\\':
        return c;
    case 'x':
        memcpy(hex, *from, 2);
        if (strspn(hex, "0123456789abcdef") == 2) {
            *from += 2;
            return (char)strtol(hex, NULL, 16);
        }
        break;
    default:
        break;
    }
    fail(at, "unknown escape");
}

/* In place: a word is never longer than its source. */
static char *read_quoted(const struct place *at, char *from, struct word *ret)
{
    char *to = ret->text = from++;
    while (*from != '"') {
        if (*from == '\0') {
            fail(at, "no closing quote");
        }
        char c = *from++;
        *to++ = c == '\\' ? unescape(at, &from) : c;
    }
    *to = '\0';
    ret->len = (size_t)(to - ret->text);
    return from + 1;
}

static void split(const struct place *at, char *text, struct line *ret)
{
    ret->n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        if (ret->n == WORDS_MAX) {
            fail(at, "too many words");
        }
        struct word *word = &ret->word[ret->n++];
        if (*text == '"') {
            text = read_quoted(at, text, word);
            continue;
        }
        *word = (struct word){text, strcspn(text, " ")};
        text += word->len;
        if (*text == ' ') {
            *text++ = '\0';
        }
    }
}

/* --- directives --- */

static long number(const struct place *at, const struct word *word)
{
    char *end;
    long n = strtol(word->text, &end, 0);
    if (end == word->text || *end != '\0') {
        fail(at, "not a number");
    }
    return n;
}

static struct al_bytes bytes_of(const struct word *word)
{
    return (struct al_bytes){(const uint8_t *)word->text, word->len};
}

static void add_args(const struct place *at, const struct line *l, struct test_case *c)
{
    for (size_t i = 1; i < l->n; i++) {
        if (c->n_args == WORDS_MAX) {
            fail(at, "too many arguments");
        }
        c->args[c->n_args++] = l->word[i].text;
    }
}

static void add_env(const struct place *at, const struct line *l, struct test_case *c)
{
    if (c->n_env == WORDS_MAX) {
        fail(at, "too many variables");
    }
    c->env[c->n_env++] = (struct al_env){l->word[1].text, l->word[2].text};
}

static void add_file(const struct place *at, const struct line *l, struct test_case *c)
{
    if (c->n_files == sizeof c->files / sizeof c->files[0]) {
        fail(at, "too many files");
    }
    uint32_t mode = l->n > 3 ? (uint32_t)number(at, &l->word[3]) : 0644;
    c->files[c->n_files++] = (struct al_file){l->word[1].text, bytes_of(&l->word[2]), mode};
}

static void set_stdin(const struct place *at, const struct line *l, struct test_case *c)
{
    (void)at;
    c->stdin_bytes = bytes_of(&l->word[1]);
}

static void set_inputs(const struct place *at, const struct line *l, struct test_case *c)
{
    (void)at;
    c->inputs_json = l->word[1].text;
}

static void set_code(const struct place *at, const struct line *l, struct test_case *c)
{
    (void)at;
    c->code = bytes_of(&l->word[1]);
}

static void set_quota(const struct place *at, const struct line *l, struct test_case *c)
{
    struct al_quotas *q = &c->quotas;
    const struct {
        const char *name;
        int64_t *ms;
        uint32_t *count;
    } quotas[] = {
        {"cpu_ms", &q->cpu_ms, NULL},
        {"wall_ms", &q->wall_ms, NULL},
        {"memory_mb", NULL, &q->memory_mb},
        {"pids", NULL, &q->pids},
        {"disk_mb", NULL, &q->disk_mb},
        {"open_files", NULL, &q->open_files},
        {"file_size_mb", NULL, &q->file_size_mb},
    };
    if (strcmp(l->word[1].text, "output_bytes") == 0) {
        q->output_bytes = (uint64_t)number(at, &l->word[2]);
        return;
    }
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++) {
        if (strcmp(l->word[1].text, quotas[i].name) == 0) {
            long n = number(at, &l->word[2]);
            if (quotas[i].ms) {
                *quotas[i].ms = n;
            } else {
                *quotas[i].count = (uint32_t)n;
            }
            return;
        }
    }
    fail(at, "unknown quota");
}

/* Behind the program, which is known only when its case ends. */
static void append_comments(const struct place *at, struct test_case *c, size_t n)
{
    const char *line = strcmp(c->language, "javascript") == 0 ? "// filler\n" : "# filler\n";
    char *text = allocate(at, c->code.len + n + 1);
    char *to = mempcpy(text, c->code.data, c->code.len);
    *to++ = '\n';
    for (size_t i = 0, period = strlen(line); i < n; i++) {
        to[i] = line[i % period];
    }
    c->code = (struct al_bytes){(const uint8_t *)text, c->code.len + n + 1};
}

static void fill(const struct place *at, const struct line *l, struct test_case *c)
{
    size_t n = (size_t)number(at, &l->word[2]);
    const char *what = l->word[1].text;
    char *text = allocate(at, n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    struct word filled = {text, n};
    if (strcmp(what, "stdin") == 0) {
        c->stdin_bytes = bytes_of(&filled);
    } else if (strcmp(what, "arg") == 0) {
        add_args(at, &(struct line){.word = {{0}, filled}, .n = 2}, c);
    } else if (strcmp(what, "env") == 0) {
        add_env(at, &(struct line){.word = {{0}, {(char *)"FILL", 4}, filled}, .n = 3}, c);
    } else if (strcmp(what, "file") == 0) {
        add_file(at, &(struct line){.word = {{0}, {(char *)"fill", 4}, filled}, .n = 3}, c);
    } else {
        fail(at, "fill stdin, arg, env, file or code");
    }
}

static void set_signal(const struct place *at, const struct line *l, struct test_case *c)
{
    c->signal_on_output = (int)number(at, &l->word[1]);
}

static void set_exit(const struct place *at, const struct line *l, struct test_case *c)
{
    c->exit_value = (int)number(at, &l->word[1]);
}

static void set_dies(const struct place *at, const struct line *l, struct test_case *c)
{
    c->exit_kind = AL_EXIT_SIGNAL;
    c->exit_value = (int)number(at, &l->word[1]);
}

static void set_limit(const struct place *at, const struct line *l, struct test_case *c)
{
    static const char *const names[] = {"", "cpu", "wall", "memory", "pids", "output"};
    for (int i = AL_LIMIT_CPU; i <= AL_LIMIT_OUTPUT; i++) {
        if (strcmp(l->word[1].text, names[i]) == 0) {
            c->limit = (enum al_limit)i;
            c->exit_kind = AL_EXIT_NONE;
            return;
        }
    }
    fail(at, "unknown limit");
}

static void set_cold(const struct place *at, const struct line *l, struct test_case *c)
{
    (void)at, (void)l;
    c->cold = true;
}

static void set_varies(const struct place *at, const struct line *l, struct test_case *c)
{
    (void)at, (void)l;
    c->expectation = VARIES;
}

static void set_shows(const struct place *at, const struct line *l, struct test_case *c)
{
    (void)at, (void)l;
    c->expectation = SHOWS;
}

static void read_directive(const struct place *at, char *text, struct test_case *c)
{
    static const struct {
        const char *name;
        void (*read)(const struct place *at, const struct line *l, struct test_case *c);
        size_t words; /* at least */
    } directives[] = {
        {"arg", add_args, 1},    {"env", add_env, 3},       {"file", add_file, 3},
        {"stdin", set_stdin, 2}, {"inputs", set_inputs, 2}, {"code", set_code, 2},
        {"quota", set_quota, 3}, {"fill", fill, 3},         {"signal", set_signal, 2},
        {"exit", set_exit, 2},   {"dies", set_dies, 2},     {"limit", set_limit, 2},
        {"cold", set_cold, 1},   {"varies", set_varies, 1}, {"shows", set_shows, 1},
    };
    static struct line line;
    split(at, text, &line);
    for (size_t i = 0; i < sizeof directives / sizeof directives[0] && line.n > 0; i++) {
        if (strcmp(line.word[0].text, directives[i].name) == 0 && line.n >= directives[i].words) {
            directives[i].read(at, &line, c);
            return;
        }
    }
    fail(at, "not a directive, or words are missing");
}

/* --- files --- */

static char *read_all(const char *path)
{
    const struct place at = {path, 0};
    al_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        fail(&at, "cannot be opened");
    }
    char *text = allocate(&at, (size_t)st.st_size + 1);
    if (read(fd, text, (size_t)st.st_size) != st.st_size) {
        fail(&at, "cannot be read");
    }
    text[st.st_size] = '\0';
    return text;
}

/* Cuts the next line off; NULL at the end. */
static char *next_line(struct place *at, char **text)
{
    if (**text == '\0') {
        return NULL;
    }
    char *line = *text;
    *text += strcspn(line, "\n");
    if (**text == '\n') {
        *(*text)++ = '\0';
    }
    at->line++;
    return line;
}

/* Up to the next case. */
static void read_program(struct place *at, char **text, struct test_case *c)
{
    char *start = *text;
    char *end = strncmp(start, "== ", 3) == 0 ? start : strstr(start, "\n== ");
    end = end ? end : start + strlen(start);
    for (const char *p = start; p < end; p++) {
        at->line += *p == '\n';
    }
    *text = end + (*end == '\n');
    at->line += *end == '\n';
    size_t n = (size_t)(end - start); /* the newline before an empty line is the last one's */
    c->code = (struct al_bytes){(const uint8_t *)start, n};
}

static void read_case(struct place *at, char **text, struct test_case *c)
{
    size_t pad = 0;
    struct al_bytes given = {0};
    for (char *line; (line = next_line(at, text)) != NULL && strcmp(line, "--") != 0;) {
        if (strncmp(line, "fill code ", 10) == 0) {
            pad = (size_t)strtoul(line + 10, NULL, 10);
        } else {
            read_directive(at, line, c);
        }
    }
    given = c->code;
    read_program(at, text, c);
    c->code = given.data ? given : c->code;
    if (pad > 0) {
        append_comments(at, c, pad);
    }
}

size_t cases_read(const char *path, struct test_case *ret, size_t n)
{
    struct place at = {.path = path};
    const char *language = NULL;
    char *text = read_all(path);
    for (char *line; (line = next_line(&at, &text)) != NULL;) {
        if (strncmp(line, "language ", 9) == 0) {
            language = line + 9;
        } else if (strncmp(line, "== ", 3) == 0) {
            if (n == CASES_MAX || !language) {
                fail(&at, language ? "too many cases" : "no language");
            }
            ret[n] = (struct test_case){
                .name = line + 3, .language = language, .exit_kind = AL_EXIT_CODE};
            read_case(&at, &text, &ret[n++]);
        }
    }
    return n;
}
