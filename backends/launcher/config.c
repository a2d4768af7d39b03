#include "backends/launcher/config.h"

#include <errno.h>
#include <string.h>

#include "backends/base/ini.h"
#include "backends/launcher/config_keys.h"

static const char builtin[] = "[cells]\n"
                              "system_paths = /usr /bin /sbin /lib /lib32 /lib64 /libx32\n"
                              "  /etc/alternatives /etc/ld.so.cache\n"
                              "[runtime python]\n"
                              "aliases = python3 py\n"
                              "argv = /usr/bin/python3 {code}\n"
                              "prestart = python\n"
                              "code_file = main.py\n"
                              "[runtime javascript]\n"
                              "aliases = js node\n"
                              "argv = /usr/bin/node {code}\n"
                              "prestart = node\n"
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
                              "prestart = bash\n"
                              "code_file = main.sh\n";

struct parse {
    struct al_cells_config *config;
    bool from_file;
    uint32_t seen; /* by the index of the key */
    uint32_t seen_of_runtime[AL_RUNTIMES_MAX];
    bool runtime_from_file[AL_RUNTIMES_MAX]; /* that runtime was (re)defined by the file */
};

/* The runtime of that name, made if need be; NULL when it cannot be. A section of the file replaces
 * what is built in. */
static struct al_runtime *find_runtime(struct parse *p, const char *name, struct al_err *err)
{
    struct al_cells_config *c = p->config;
    size_t i = 0;
    while (i < c->n_runtimes && strcmp(c->runtimes[i].info.name, name) != 0) {
        i++;
    }
    if (!al_cells_name_is_valid(name)) {
        al_err_set(err, AL_ERR_INVALID_ARGUMENT, "not a runtime's name; allowed: a-z 0-9 . _ + -");
        return NULL;
    }
    if (i == AL_RUNTIMES_MAX) {
        al_err_set(err, AL_ERR_INVALID_ARGUMENT, "too many runtimes; allowed: at most %d",
                   AL_RUNTIMES_MAX);
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
    static const char *const names[] = {"server", "limits", "defaults", "quota",
                                        "gate",   "cache",  "records",  "docker"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(section, names[i]) == 0) {
            return true;
        }
    }
    if (strncmp(section, "tenant ", 7) == 0 || strncmp(section, "image ", 6) == 0) {
        return true;
    }
    /* It refuses what neither knows. */
    return strcmp(section, "maxima") == 0 && !al_cells_key_find(section, key);
}

static int set_key(struct parse *p, struct al_runtime *rt, const struct al_ini_value *value,
                   struct al_err *err)
{
    const struct al_cells_key *key = al_cells_key_find(rt ? "runtime" : value->section, value->key);
    if (!key || (!rt && strcmp(value->section, "runtime") == 0)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "unknown section or key");
    }
    uint32_t *seen = rt ? &p->seen_of_runtime[rt - p->config->runtimes] : &p->seen;
    uint32_t bit = 1u << al_cells_key_index(key);
    if (!value->continues && (*seen & bit)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "given twice (an indented line continues the key above it)");
    }
    *seen |= bit;
    return al_cells_key_set(key, p->config, rt, value->continues, value->text, err);
}

static int take_value(void *arg, const struct al_ini_value *value, struct al_err *err)
{
    struct parse *p = arg;
    struct al_runtime *rt = NULL;
    int rc = 0;
    if (is_for_airlockd(value->section, value->key)) {
        return 0;
    }
    if (strncmp(value->section, "runtime ", 8) == 0) {
        rt = find_runtime(p, value->section + 8, err);
        rc = rt ? 0 : -EINVAL;
    }
    rc = rc < 0 ? rc : set_key(p, rt, value, err);
    al_err_wrap(err, "[%s] %s", value->section, value->key);
    return rc;
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
        .prepared = 16,         /* a burst's worth; each holds about 0.5 MiB */
        .prestarted = 4,        /* each holds 3 to 6 MiB */
        .require = AL_LAYERS_ALL,
        .jails = {[AL_JAIL_BUBBLEWRAP] = {.program = "/usr/bin/bwrap"},
                  [AL_JAIL_FIREJAIL] = {.program = "/usr/bin/firejail"}},
        .jobs_max = 2048, /* stream slots, run slots of 256 cores, and cells made ahead */
        .maxima = AL_QUOTAS_MAXIMA,
    };
    static const struct al_ini_handler handler = {.value = take_value};
    struct parse p = {.config = config};
    int rc = al_ini_parse("builtin", builtin, sizeof builtin - 1, &handler, &p, err);
    p.from_file = true;
    p.seen = 0;
    rc = rc == 0 && path ? al_ini_read(path, &handler, &p, err) : rc;
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
