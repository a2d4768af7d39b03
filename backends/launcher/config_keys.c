#include "backends/launcher/config_keys.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/api/backend.h"

struct al_text {
    struct al_text *next;
    char bytes[];
};

/* One value on its way into the configuration. */
struct setting {
    struct al_cells_config *config;
    bool continues; /* an indented line: goes on with the list of the line above */
    struct al_err *err;
};

/* One key: where its value goes (in the configuration, or in its runtime), and what it may be. */
struct al_cells_key {
    const char *section; /* "runtime": of every [runtime NAME] */
    const char *name;
    int (*set)(struct setting *set, const struct al_cells_key *key, void *at, const char *value);
    size_t offset;
    double min, max; /* numbers */
    size_t size;     /* strings: bytes, terminator included */
};

/* What is wrong and, if `allowed` is not empty, what would be right. */
static int fail(struct al_err *err, const char *what, const char *allowed)
{
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s%s%s", what, allowed[0] ? "; allowed: " : "",
                      allowed);
}

#define NAME_CHARS    "abcdefghijklmnopqrstuvwxyz0123456789._+-"
#define VERSION_CHARS NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Digits, and with `decimals` a point and more of them: no sign, no exponent, no hexadecimal. */
static bool is_number(const char *s, bool decimals)
{
    size_t n = strspn(s, "0123456789");
    if (n > 0 && decimals && s[n] == '.' && isdigit((unsigned char)s[n + 1])) {
        n += 1 + strspn(s + n + 1, "0123456789");
    }
    return n > 0 && s[n] == '\0';
}

static int read_number(struct setting *set, const struct al_cells_key *key, const char *value,
                       bool decimals, double *ret)
{
    double v = strtod(value, NULL);
    if (is_number(value, decimals) && v >= key->min && v <= key->max) {
        *ret = v;
        return 0;
    }
    char range[64];
    snprintf(range, sizeof range, "%g to %.10g", key->min, key->max);
    return fail(set->err, decimals ? "not a number in range" : "not a whole number in range",
                range);
}

static int set_u32(struct setting *set, const struct al_cells_key *key, void *at, const char *value)
{
    double v = 0;
    int rc = read_number(set, key, value, false, &v);
    if (rc < 0) {
        return rc;
    }
    *(uint32_t *)at = (uint32_t)v;
    return 0;
}

static int set_seconds(struct setting *set, const struct al_cells_key *key, void *at,
                       const char *value)
{
    double v = 0;
    int rc = read_number(set, key, value, true, &v);
    if (rc < 0) {
        return rc;
    }
    *(int64_t *)at = (int64_t)(v * 1000 + 0.5);
    return 0;
}

static int set_bool(struct setting *set, const struct al_cells_key *key, void *at,
                    const char *value)
{
    (void)key;
    bool yes = strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;
    bool no = strcmp(value, "no") == 0 || strcmp(value, "false") == 0;
    *(bool *)at = yes;
    return yes || no ? 0 : fail(set->err, "not a truth value", "yes, no");
}

static int set_string(struct setting *set, const struct al_cells_key *key, void *at,
                      const char *value)
{
    if (strlen(value) >= key->size) {
        return fail(set->err, "too long", "");
    }
    memcpy(at, value, strlen(value) + 1);
    return 0;
}

static int set_program(struct setting *set, const struct al_cells_key *key, void *at,
                       const char *value)
{
    if (value[0] != '\0' && value[0] != '/') {
        return fail(set->err, "not the path of a program", "an absolute path, or nothing");
    }
    return set_string(set, key, at, value);
}

static int set_version(struct setting *set, const struct al_cells_key *key, void *at,
                       const char *value)
{
    if (value[0] == '\0' || value[strspn(value, VERSION_CHARS)] != '\0') {
        return fail(set->err, "not a version", "A-Z a-z 0-9 . _ + -");
    }
    return set_string(set, key, at, value);
}

static int set_file_name(struct setting *set, const struct al_cells_key *key, void *at,
                         const char *value)
{
    if (value[0] == '\0' || value[0] == '.' || strchr(value, '/')) {
        return fail(set->err, "not a plain file name", "no '/', no leading '.'");
    }
    return set_string(set, key, at, value);
}

/* A copy that lives as long as the configuration. */
static char *keep_text(struct al_cells_config *config, const char *text)
{
    size_t n = strlen(text) + 1;
    struct al_text *kept = malloc(sizeof *kept + n);
    if (!kept) {
        return NULL;
    }
    kept->next = config->texts;
    config->texts = kept;
    return memcpy(kept->bytes, text, n);
}

static int add_words(struct setting *set, struct al_words *to, size_t max, const char *value)
{
    char *rest = keep_text(set->config, value);
    if (!rest) {
        return fail(set->err, "out of memory", "");
    }
    for (char *word; (word = strsep(&rest, " \t")) != NULL;) {
        if (*word == ';') {
            return fail(set->err, "a comment behind an indented line", "");
        }
        if (*word && to->n == max) {
            char allowed[32];
            snprintf(allowed, sizeof allowed, "at most %zu", max);
            return fail(set->err, "too many words", allowed);
        }
        if (*word) {
            to->word[to->n++] = word;
        }
    }
    to->word[to->n] = NULL;
    return 0;
}

static int set_words(struct setting *set, const struct al_cells_key *key, void *at,
                     const char *value)
{
    (void)key;
    struct al_words *to = at;
    to->n = set->continues ? to->n : 0;
    return add_words(set, to, AL_ARGV_MAX, value);
}

static int set_aliases(struct setting *set, const struct al_cells_key *key, void *at,
                       const char *value)
{
    char(*aliases)[AL_RUNTIME_NAME_MAX] = at;
    struct al_words words = {.n = 0};
    size_t n = 0;
    while (set->continues && n < AL_LANGUAGE_ALIASES_MAX && aliases[n][0]) {
        n++;
    }
    int rc = add_words(set, &words, AL_LANGUAGE_ALIASES_MAX - n, value);
    for (size_t i = 0; rc == 0 && i < words.n; i++) {
        if (words.word[i][strspn(words.word[i], NAME_CHARS)] != '\0') {
            return fail(set->err, "not an alias", "a-z 0-9 . _ + -");
        }
        rc = set_string(set, key, aliases[n + i], words.word[i]);
    }
    return rc;
}

static int set_prestart(struct setting *set, const struct al_cells_key *key, void *at,
                        const char *value)
{
    static const char *const names[] = {"none", "python", "node", "bash"};
    (void)key;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(value, names[i]) == 0) {
            *(enum al_prestart *)at = (enum al_prestart)i;
            return 0;
        }
    }
    return fail(set->err, "not a way to start an interpreter ahead", "none, python, node, bash");
}

/* The layer of that name as a bit, 0 when there is none. */
static uint32_t layer_bit(const char *name)
{
    for (unsigned i = 0; i < AL_LAYER_COUNT; i++) {
        if (strcmp(name, al_layer_name(i)) == 0) {
            return 1u << i;
        }
    }
    return 0;
}

static int set_layers(struct setting *set, const struct al_cells_key *key, void *at,
                      const char *value)
{
    struct al_words words = {.n = 0};
    uint32_t layers = set->continues ? *(uint32_t *)at : 0;
    (void)key;
    int rc = add_words(set, &words, AL_ARGV_MAX, value);
    for (size_t i = 0; rc == 0 && i < words.n; i++) {
        uint32_t bit = layer_bit(words.word[i]);
        layers |= bit;
        rc = bit ? 0 : fail(set->err, "not a layer", "the names that `isolation` has");
    }
    if (rc == 0) {
        *(uint32_t *)at = layers;
    }
    return rc;
}

#define IN_CONFIG(field) .offset = offsetof(struct al_cells_config, field)
#define IN_JAIL(tool, field) \
    .offset =                \
        offsetof(struct al_cells_config, jails[0].field) + (tool) * sizeof(struct al_jail_config)
#define IN_RUNTIME(field) .offset = offsetof(struct al_runtime, field)

static const struct al_cells_key keys[] = {
    {"cells", "uid_base", set_u32, IN_CONFIG(uid_base), .min = 65536, .max = 2147000000},
    {"cells", "jobs_max", set_u32, IN_CONFIG(jobs_max), .min = 1, .max = AL_JOBS_MAX},
    {"cells", "prepared", set_u32, IN_CONFIG(prepared), .min = 0, .max = AL_POOL_MAX},
    {"cells", "prestarted", set_u32, IN_CONFIG(prestarted), .min = 0, .max = AL_POOL_MAX},
    {"cells", "system_paths", set_words, IN_CONFIG(system_paths)},
    {"cells", "require", set_layers, IN_CONFIG(require)},
    {"cells", "cgroup_parent", set_string, IN_CONFIG(cgroup_parent), .size = 256},
    {"local", "allow_unsafe", set_bool, IN_CONFIG(allow_unsafe)},
    {"bubblewrap", "program", set_program, IN_JAIL(AL_JAIL_BUBBLEWRAP, program), .size = 256},
    {"bubblewrap", "allow_known_escapes", set_bool,
     IN_JAIL(AL_JAIL_BUBBLEWRAP, allow_known_escapes)},
    {"firejail", "program", set_program, IN_JAIL(AL_JAIL_FIREJAIL, program), .size = 256},
    {"firejail", "allow_known_escapes", set_bool, IN_JAIL(AL_JAIL_FIREJAIL, allow_known_escapes)},
    {"maxima", "cpu_seconds", set_seconds, IN_CONFIG(maxima.cpu_ms), .min = 0.001, .max = 604800},
    {"maxima", "wall_seconds", set_seconds, IN_CONFIG(maxima.wall_ms), .min = 0.001, .max = 604800},
    {"maxima", "memory_mb", set_u32, IN_CONFIG(maxima.memory_mb), .min = 1, .max = 1048576},
    {"maxima", "pids", set_u32, IN_CONFIG(maxima.pids), .min = 1, .max = 65536},
    {"maxima", "file_size_mb", set_u32, IN_CONFIG(maxima.file_size_mb), .min = 1, .max = 1048576},
    {"maxima", "open_files", set_u32, IN_CONFIG(maxima.open_files), .min = 8, .max = 1048576},
    {"maxima", "disk_mb", set_u32, IN_CONFIG(maxima.disk_mb), .min = 1, .max = 1048576},
    {"runtime", "argv", set_words, IN_RUNTIME(argv)},
    {"runtime", "compile", set_words, IN_RUNTIME(compile)},
    {"runtime", "aliases", set_aliases, IN_RUNTIME(info.aliases), .size = AL_RUNTIME_NAME_MAX},
    {"runtime", "code_file", set_file_name, IN_RUNTIME(info.code_file),
     .size = AL_RUNTIME_NAME_MAX},
    {"runtime", "output_file", set_file_name, IN_RUNTIME(info.output_file),
     .size = AL_RUNTIME_NAME_MAX},
    {"runtime", "prestart", set_prestart, IN_RUNTIME(prestart)},
    {"runtime", "version", set_version, IN_RUNTIME(info.version), .size = AL_RUNTIME_NAME_MAX},
};
#define N_KEYS (sizeof keys / sizeof keys[0])
_Static_assert(N_KEYS <= AL_CELLS_KEYS_MAX, "each has an index below it");

const struct al_cells_key *al_cells_key_find(const char *section, const char *name)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

unsigned al_cells_key_index(const struct al_cells_key *key)
{
    return (unsigned)(key - keys);
}

int al_cells_key_set(const struct al_cells_key *key, struct al_cells_config *config,
                     struct al_runtime *runtime, bool continues, const char *value,
                     struct al_err *err)
{
    struct setting set = {.config = config, .continues = continues, .err = err};
    if (continues && key->set != set_words && key->set != set_aliases && key->set != set_layers) {
        return fail(err, "has one value only", "");
    }
    return key->set(&set, key, (runtime ? (char *)runtime : (char *)config) + key->offset, value);
}

bool al_cells_name_is_valid(const char *name)
{
    return name[0] != '\0' && name[strspn(name, NAME_CHARS)] == '\0';
}

void al_cells_texts_free(struct al_text *texts)
{
    for (struct al_text *next; texts; texts = next) {
        next = texts->next;
        free(texts);
    }
}
