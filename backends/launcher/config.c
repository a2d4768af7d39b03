#include "backends/launcher/config.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct al_runtime *runtime; /* of the section being read */
    bool from_file;
    char section[64];
    bool section_from_file[AL_RUNTIMES_MAX]; /* that runtime was (re)defined by the file */
    char *words_key; /* the list whose lines are being read: "section/key" */
    char why[160];
};

struct number_key {
    const char *section;
    const char *key;
    double min, max;
    size_t offset;
    enum { AS_U32, AS_MS } as;
};

#define U32_KEY(section, key, min, max, field)                                  \
    {                                                                           \
        section, key, min, max, offsetof(struct al_cells_config, field), AS_U32 \
    }
#define MS_KEY(section, key, min, max, field)                                  \
    {                                                                          \
        section, key, min, max, offsetof(struct al_cells_config, field), AS_MS \
    }

static const struct number_key number_keys[] = {
    U32_KEY("cells", "uid_base", 65536, 2147000000, uid_base),
    U32_KEY("cells", "jobs_max", 1, 4096, jobs_max),
    MS_KEY("maxima", "cpu_seconds", 0.001, 1e6, maxima.cpu_ms),
    MS_KEY("maxima", "wall_seconds", 0.001, 1e7, maxima.wall_ms),
    U32_KEY("maxima", "memory_mb", 1, 1 << 22, maxima.memory_mb),
    U32_KEY("maxima", "pids", 1, 1 << 22, maxima.pids),
    U32_KEY("maxima", "file_size_mb", 1, 1 << 22, maxima.file_size_mb),
    U32_KEY("maxima", "open_files", 8, 1 << 20, maxima.open_files),
    U32_KEY("maxima", "disk_mb", 1, 1 << 22, maxima.disk_mb),
};

static int fail(struct parse *p, const char *what, const char *range)
{
    snprintf(p->why, sizeof p->why, "%.60s%s%.60s", what, range[0] ? "; allowed: " : "", range);
    return 0;
}

static int set_number(struct parse *p, const struct number_key *k, const char *value)
{
    char *end;
    errno = 0;
    double v = strtod(value, &end);
    if (errno || end == value || *end || !(v >= k->min && v <= k->max)) {
        char range[64];
        snprintf(range, sizeof range, "%g to %.10g", k->min, k->max);
        return fail(p, "not a number in range", range);
    }
    void *at = (char *)p->config + k->offset;
    if (k->as == AS_MS) {
        *(int64_t *)at = (int64_t)(v * 1000);
    } else {
        *(uint32_t *)at = (uint32_t)v;
    }
    return 1;
}

static int set_bool(struct parse *p, bool *to, const char *value)
{
    bool yes = strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;
    bool no = strcmp(value, "no") == 0 || strcmp(value, "false") == 0;
    *to = yes;
    return yes || no ? 1 : fail(p, "not a truth value", "yes, no");
}

static int set_string(struct parse *p, char *to, size_t size, const char *value)
{
    if (strlen(value) >= size) {
        return fail(p, "too long", "");
    }
    memcpy(to, value, strlen(value) + 1);
    return 1;
}

/* Adds the line's words to a list. A key's first line starts the list anew, its continuation lines
 * go on. */
static int set_words(struct parse *p, struct al_words *to, const char *key, const char *value)
{
    char id[128];
    snprintf(id, sizeof id, "%d/%s/%s", p->from_file, p->section, key);
    if (!p->words_key || strcmp(p->words_key, id) != 0) {
        to->n = 0;
        free(p->words_key);
        p->words_key = strdup(id);
    }
    char *copy = strdup(value);
    if (!copy || !p->words_key) {
        return fail(p, "out of memory", "");
    }
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " \t")) != NULL;) {
        if (*word && to->n == AL_ARGV_MAX) {
            return fail(p, "too many words", "at most 24");
        }
        if (*word) {
            to->word[to->n++] = word;
        }
    }
    to->word[to->n] = NULL;
    return 1;
}

static int set_aliases(struct parse *p, struct al_msg_runtime *info, const char *value)
{
    struct al_words words = {.n = 0};
    if (!set_words(p, &words, "aliases", value)) {
        return 0;
    }
    if (words.n > AL_LANGUAGE_ALIASES_MAX) {
        return fail(p, "too many aliases", "at most 4");
    }
    for (size_t i = 0; i < AL_LANGUAGE_ALIASES_MAX; i++) {
        if (!set_string(p, info->aliases[i], sizeof info->aliases[i],
                        i < words.n ? words.word[i] : "")) {
            return 0;
        }
    }
    return 1;
}

static int set_file_name(struct parse *p, char *to, size_t size, const char *value)
{
    if (value[0] == '\0' || value[0] == '.' || strchr(value, '/')) {
        return fail(p, "not a plain file name", "no '/', no leading '.'");
    }
    return set_string(p, to, size, value);
}

static int set_runtime_key(struct parse *p, struct al_runtime *rt, const char *key,
                           const char *value)
{
    struct al_msg_runtime *info = &rt->info;
    if (strcmp(key, "argv") == 0) {
        return set_words(p, &rt->argv, key, value);
    }
    if (strcmp(key, "compile") == 0) {
        return set_words(p, &rt->compile, key, value);
    }
    if (strcmp(key, "aliases") == 0) {
        return set_aliases(p, info, value);
    }
    if (strcmp(key, "code_file") == 0) {
        return set_file_name(p, info->code_file, sizeof info->code_file, value);
    }
    if (strcmp(key, "output_file") == 0) {
        return set_file_name(p, info->output_file, sizeof info->output_file, value);
    }
    if (strcmp(key, "version") == 0) {
        rt->version_given = true;
        return set_string(p, info->version, sizeof info->version, value);
    }
    return fail(p, "unknown key", "aliases, argv, code_file, compile, output_file, version");
}

static struct al_runtime *find_runtime(struct parse *p, const char *name)
{
    struct al_cells_config *c = p->config;
    for (size_t i = 0; i < c->n_runtimes; i++) {
        if (strcmp(c->runtimes[i].info.name, name) == 0) {
            if (p->from_file && !p->section_from_file[i]) {
                c->runtimes[i] = (struct al_runtime){0};
                set_string(p, c->runtimes[i].info.name, AL_RUNTIME_NAME_MAX, name);
                p->section_from_file[i] = true;
            }
            return &c->runtimes[i];
        }
    }
    if (c->n_runtimes == AL_RUNTIMES_MAX) {
        fail(p, "too many runtimes", "at most 32");
        return NULL;
    }
    p->section_from_file[c->n_runtimes] = p->from_file;
    struct al_runtime *rt = &c->runtimes[c->n_runtimes++];
    *rt = (struct al_runtime){0};
    return set_string(p, rt->info.name, AL_RUNTIME_NAME_MAX, name) ? rt : NULL;
}

static bool is_service_section(const char *section)
{
    static const char *const names[] = {"server", "limits", "defaults"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(section, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int set_cells_key(struct parse *p, const char *section, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof number_keys / sizeof number_keys[0]; i++) {
        if (strcmp(number_keys[i].section, section) == 0 && strcmp(number_keys[i].key, key) == 0) {
            return set_number(p, &number_keys[i], value);
        }
    }
    if (strcmp(section, "maxima") == 0) {
        return 1; /* output and artifacts: airlockd's business, which also refuses unknown keys */
    }
    if (strcmp(section, "local") == 0 && strcmp(key, "allow_unsafe") == 0) {
        return set_bool(p, &p->config->allow_unsafe, value);
    }
    if (strcmp(section, "cells") == 0 && strcmp(key, "system_paths") == 0) {
        return set_words(p, &p->config->system_paths, key, value);
    }
    if (strcmp(section, "cells") == 0 && strcmp(key, "cgroup_parent") == 0) {
        return set_string(p, p->config->cgroup_parent, sizeof p->config->cgroup_parent, value);
    }
    return fail(p, "unknown section or key", "");
}

static int on_key(void *arg, const char *section, const char *key, const char *value)
{
    struct parse *p = arg;
    if (p->why[0]) {
        return 0; /* the first error is the one to show */
    }
    if (!set_string(p, p->section, sizeof p->section, section)) {
        return 0;
    }
    if (is_service_section(section)) {
        return 1;
    }
    if (strncmp(section, "runtime ", 8) == 0) {
        struct al_runtime *rt = find_runtime(p, section + 8);
        return rt ? set_runtime_key(p, rt, key, value) : 0;
    }
    return set_cells_key(p, section, key, value);
}

static int check_runtimes(const struct al_cells_config *c, const char *path, struct al_err *err)
{
    for (size_t i = 0; i < c->n_runtimes; i++) {
        const struct al_runtime *rt = &c->runtimes[i];
        const char *missing = rt->argv.n == 0                                        ? "argv"
                              : rt->info.code_file[0] == '\0'                        ? "code_file"
                              : rt->compile.n > 0 && rt->info.output_file[0] == '\0' ? "output_file"
                              : strspn(rt->info.name, "abcdefghijklmnopqrstuvwxyz0123456789._+-") !=
                                      strlen(rt->info.name)
                                  ? "a name of a-z 0-9 . _ + -"
                                  : NULL;
        if (missing) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: [runtime %s]: lacks %s", path,
                              rt->info.name, missing);
        }
    }
    return 0;
}

int al_cells_config_read(struct al_cells_config *config, const char *path, struct al_err *err)
{
    *config = (struct al_cells_config){
        .uid_base = 2000000000, /* above what distributions, systemd and subuid ranges use */
        .jobs_max = 1100,       /* the service's default of run and stream slots, and some */
        .maxima = {.cpu_ms = 300000,
                   .wall_ms = 3600000,
                   .memory_mb = 4096,
                   .pids = 1024,
                   .file_size_mb = 4096,
                   .open_files = 1024,
                   .disk_mb = 4096},
    };
    struct parse p = {.config = config};
    int line = ini_parse_string(builtin, on_key, &p);
    if (line == 0 && path) {
        p.from_file = true;
        line = ini_parse(path, on_key, &p);
    }
    free(p.words_key);
    if (line < 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: cannot be read", path);
    }
    if (line > 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s:%d: [%s]: %s", path ? path : "builtin",
                          line, p.section, p.why[0] ? p.why : "not a `key = value` line");
    }
    return check_runtimes(config, path ? path : "builtin", err);
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
