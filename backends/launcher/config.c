/*
 * Theory of operation. inih splits the text into sections, keys and values, but cuts what is too
 * long for its buffers without a word and knows no line numbers: so it gets its lines from
 * read_line, which counts them and refuses what would be cut. An indented line comes as one more
 * value of the key above it; read_line notes that, so that it can be told from a key given twice.
 */
#include "backends/launcher/config.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cleanup.h"
#include "backends/base/io.h"
#include "backends/launcher/config_keys.h"

#define FILE_BYTES_MAX   (256u << 10)
#define SECTION_NAME_MAX 49 /* inih's buffer, less the terminator */

static const char builtin[] = "[cells]\n"
                              "system_paths = /usr /bin /sbin /lib /lib32 /lib64 /libx32\n"
                              "  /etc/alternatives /etc/ld.so.cache\n"
                              "[runtime python]\n"
                              "aliases = python3 py\n"
                              "argv = /usr/bin/python3 {code}\n"
                              "code_file = main.py\n"
                              "[runtime javascript]\n"
                              "aliases = js node\n"
                              "argv = /usr/bin/node {code}\n"
                              "code_file = main.js\n"
                              "[runtime typescript]\n"
                              "aliases = ts\n"
                              "compile = /usr/bin/esbuild {code} --outfile={output}\n"
                              "  --bundle --platform=node --format=cjs\n"
                              "  --packages=external --log-level=warning --color=false\n"
                              "argv = /usr/bin/node {output}\n"
                              "code_file = main.ts\n"
                              "output_file = main.js\n"
                              "[runtime bash]\n"
                              "argv = /bin/bash {code}\n"
                              "code_file = main.sh\n";

struct parse {
    struct al_cells_config *config;
    const char *path;
    const char *next; /* the unread rest of the text */
    const char *end;
    int line;
    bool indented;  /* that line */
    bool continues; /* it goes on with the key above it */
    bool from_file;
    const char *section, *key;        /* of the value being set */
    char last[SECTION_NAME_MAX + 64]; /* "section/key" of the one before */
    uint32_t seen;                    /* by the index of the key */
    uint32_t seen_of_runtime[AL_RUNTIMES_MAX];
    bool runtime_from_file[AL_RUNTIMES_MAX]; /* that runtime was (re)defined by the file */
    struct al_err *err;
    bool failed;
};

/* Fails at the current key. Returns 0: inih's failure. */
static int fail_key(struct parse *p, const char *what)
{
    al_err_set(p->err, AL_ERR_INVALID_ARGUMENT, "%s:%d: [%s] %s: %s", p->path, p->line, p->section,
               p->key, what);
    p->failed = true;
    return 0;
}

static int fail_line(struct parse *p, const char *what)
{
    al_err_set(p->err, AL_ERR_INVALID_ARGUMENT, "%s:%d: %s", p->path, p->line, what);
    p->failed = true;
    return 0;
}

/* The runtime of that name, made if need be; NULL when it cannot be. A section of the file replaces
 * what is built in. */
static struct al_runtime *find_runtime(struct parse *p, const char *name)
{
    struct al_cells_config *c = p->config;
    size_t i = 0;
    while (i < c->n_runtimes && strcmp(c->runtimes[i].info.name, name) != 0) {
        i++;
    }
    if (!al_cells_name_is_valid(name)) {
        fail_key(p, "not a runtime's name; allowed: a-z 0-9 . _ + -");
        return NULL;
    }
    if (i == AL_RUNTIMES_MAX) {
        fail_key(p, "too many runtimes; allowed: at most 32");
        return NULL;
    }
    struct al_runtime *rt = &c->runtimes[i];
    if (i == c->n_runtimes || (p->from_file && !p->runtime_from_file[i])) {
        *rt = (struct al_runtime){0};
        al_err_copy_text(rt->info.name, sizeof rt->info.name, name); /* fits: inih's are shorter */
        p->runtime_from_file[i] = p->from_file;
        p->seen_of_runtime[i] = 0;
    }
    c->n_runtimes = i == c->n_runtimes ? i + 1 : c->n_runtimes;
    return rt;
}

static bool is_for_airlockd(const char *section, const char *key)
{
    static const char *const names[] = {"server", "limits", "defaults"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(section, names[i]) == 0) {
            return true;
        }
    }
    /* It refuses what neither knows. */
    return strcmp(section, "maxima") == 0 && !al_cells_key_find(section, key);
}

static int set_key(struct parse *p, struct al_runtime *rt, const char *value)
{
    const struct al_cells_key *key = al_cells_key_find(rt ? "runtime" : p->section, p->key);
    if (!key || (!rt && strcmp(p->section, "runtime") == 0)) {
        return fail_key(p, "unknown section or key");
    }
    uint32_t *seen = rt ? &p->seen_of_runtime[rt - p->config->runtimes] : &p->seen;
    uint32_t bit = 1u << al_cells_key_index(key);
    if (!p->continues && (*seen & bit)) {
        return fail_key(p, "given twice (an indented line continues the key above it)");
    }
    *seen |= bit;
    struct al_err why = {0};
    return al_cells_key_set(key, p->config, rt, p->continues, value, &why) < 0
               ? fail_key(p, why.text)
               : 1;
}

static int on_key(void *arg, const char *section, const char *name, const char *value)
{
    struct parse *p = arg;
    char id[sizeof p->last];
    if (p->failed) {
        return 0; /* the first error is the one to show */
    }
    snprintf(id, sizeof id, "%s/%s", section, name);
    p->continues = p->indented && strcmp(id, p->last) == 0;
    memcpy(p->last, id, sizeof id);
    p->section = section;
    p->key = name;
    if (is_for_airlockd(section, name)) {
        return 1;
    }
    if (strncmp(section, "runtime ", 8) != 0) {
        return set_key(p, NULL, value);
    }
    struct al_runtime *rt = find_runtime(p, section + 8);
    return rt ? set_key(p, rt, value) : 0;
}

/* fgets for inih. */
static char *read_line(char *buf, int size, void *stream)
{
    struct parse *p = stream;
    if (p->failed || p->next == p->end) {
        return NULL;
    }
    const char *newline = memchr(p->next, '\n', (size_t)(p->end - p->next));
    const char *after = newline ? newline + 1 : p->end;
    size_t len = (size_t)(after - p->next);
    const char *close = *p->next == '[' ? memchr(p->next, ']', len) : NULL;
    p->line++;
    p->indented = *p->next == ' ' || *p->next == '\t';
    if (len >= (size_t)size) {
        fail_line(p, "the line is too long; allowed: at most 198 bytes");
    } else if (memchr(p->next, '\0', len)) {
        fail_line(p, "a NUL byte");
    } else if (close && close - p->next - 1 > SECTION_NAME_MAX) {
        fail_line(p, "the section's name is too long; allowed: at most 49 bytes");
    }
    if (p->failed) {
        return NULL;
    }
    *(char *)mempcpy(buf, p->next, len) = '\0';
    p->next = after;
    return buf;
}

static int parse_text(struct parse *p, const char *path, const char *text, size_t len)
{
    p->path = path;
    p->next = text;
    p->end = text + len;
    p->line = 0;
    p->seen = 0;
    p->last[0] = '\0';
    int bad_line = ini_parse_stream(read_line, p, on_key, p);
    if (bad_line > 0 && !p->failed) {
        p->line = bad_line;
        fail_line(p, "neither [section] nor key = value");
    } else if (bad_line < 0) {
        fail_line(p, "out of memory");
    }
    return p->failed ? -EINVAL : 0;
}

static int parse_file(struct parse *p, const char *path)
{
    al_auto_free char *text = malloc(FILE_BYTES_MAX);
    ssize_t len = text ? al_io_read_file(AT_FDCWD, path, text, FILE_BYTES_MAX) : -ENOMEM;
    if (len < 0) {
        return al_err_set(p->err, AL_ERR_INVALID_ARGUMENT, "%s: %s", path, strerror((int)-len));
    }
    p->from_file = true;
    return parse_text(p, path, text, (size_t)len);
}

/* A relative path would be looked up in the job's own workdir. */
static bool names_a_program(const struct al_words *argv)
{
    const char *program = argv->word[0];
    return program[0] == '/' || strcmp(program, "{code}") == 0 || strcmp(program, "{output}") == 0;
}

static const char *what_is_wrong(const struct al_runtime *rt)
{
    if (rt->argv.n == 0) {
        return "argv: missing";
    }
    if (!names_a_program(&rt->argv)) {
        return "argv: the program is not an absolute path";
    }
    if (rt->compile.n > 0 && !names_a_program(&rt->compile)) {
        return "compile: the program is not an absolute path";
    }
    if (rt->info.code_file[0] == '\0') {
        return "code_file: missing";
    }
    return rt->compile.n > 0 && rt->info.output_file[0] == '\0' ? "output_file: missing" : NULL;
}

static int check_whole(const struct al_cells_config *c, const char *path, struct al_err *err)
{
    for (size_t i = 0; i < c->n_runtimes; i++) {
        const char *wrong = what_is_wrong(&c->runtimes[i]);
        if (wrong) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: [runtime %s] %s", path,
                              c->runtimes[i].info.name, wrong);
        }
    }
    for (size_t i = 0; i < c->system_paths.n; i++) {
        const char *at = c->system_paths.word[i];
        if (at[0] != '/' || strstr(at, "/..")) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                              "%s: [cells] system_paths: %s is not an absolute path without '..'",
                              path, at);
        }
    }
    return 0;
}

int al_cells_config_read(struct al_cells_config *config, const char *path, struct al_err *err)
{
    *config = (struct al_cells_config){
        .uid_base = 2000000000, /* above what distributions, systemd and subuid ranges use */
        .prepared = 4,          /* a small burst's worth; each holds about 0.5 MiB */
        .jobs_max = 2048,       /* stream slots, run slots of 256 cores, and cells made ahead */
        .maxima = {.cpu_ms = 300000,
                   .wall_ms = 3600000,
                   .memory_mb = 4096,
                   .pids = 1024,
                   .file_size_mb = 4096,
                   .open_files = 1024,
                   .disk_mb = 4096},
    };
    struct al_err why = {0};
    struct parse p = {.config = config, .err = err ? err : &why};
    int rc = parse_text(&p, "builtin", builtin, sizeof builtin - 1);
    rc = rc == 0 && path ? parse_file(&p, path) : rc;
    rc = rc == 0 ? check_whole(config, path ? path : "builtin", err) : rc;
    if (rc < 0) {
        al_cells_config_finish(config);
    }
    return rc;
}

void al_cells_config_finish(struct al_cells_config *config)
{
    al_cells_texts_free(config->texts);
    *config = (struct al_cells_config){0};
}

const struct al_runtime *al_cells_config_runtime(const struct al_cells_config *config,
                                                 const char *name_at_version)
{
    const char *at = strchr(name_at_version, '@');
    for (size_t i = 0; at && i < config->n_runtimes; i++) {
        const struct al_msg_runtime *info = &config->runtimes[i].info;
        size_t n = strlen(info->name);
        if ((size_t)(at - name_at_version) == n && memcmp(info->name, name_at_version, n) == 0 &&
            strcmp(info->version, at + 1) == 0)
        {
            return &config->runtimes[i];
        }
    }
    return NULL;
}
