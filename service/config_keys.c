#include "service/config_keys.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "service/quote.h"

enum key_kind {
    KEY_LISTEN,
    KEY_ABSOLUTE_PATH,
    KEY_OPTIONAL_PATH, /* absolute, or empty */
    KEY_NAME,
    KEY_NUMBER,
    KEY_SECONDS, /* decimals allowed; stored as ms */
    KEY_DAYS,    /* the same */
    KEY_YES_NO,
    KEY_GATE_MODE,
};

struct al_config_key {
    const char *section;
    const char *name;
    enum key_kind kind;
    size_t offset; /* in struct al_config, or struct al_config_tenant */
    size_t size;   /* of the field */
    uint64_t unit; /* KEY_NUMBER: what is stored for a value of 1; KEY_SECONDS, KEY_DAYS: 0.001 */
    int64_t min;   /* KEY_NUMBER as written; KEY_SECONDS, KEY_DAYS in thousandths */
    int64_t max;
};

#define FIELD_OF(type, f) offsetof(type, f), sizeof(((type *)NULL)->f)
#define FIELD(f)          FIELD_OF(struct al_config, f)
#define TENANT_FIELD(f)   FIELD_OF(struct al_config_tenant, f)

#define DAY_S     (INT64_C(24) * 3600)
#define WEEK_MS   (7 * DAY_S * 1000)
#define TEBI_IN_M (INT64_C(1) << 20)

/* clang-format off */
#define QUOTA_KEYS(section, q)                                                                  \
    {section, "cpu_seconds", KEY_SECONDS, FIELD(limits.q.cpu_ms), 1, 1, WEEK_MS},               \
    {section, "wall_seconds", KEY_SECONDS, FIELD(limits.q.wall_ms), 1, 1, WEEK_MS},             \
    {section, "memory_mb", KEY_NUMBER, FIELD(limits.q.memory_mb), 1, 1, TEBI_IN_M},             \
    {section, "pids", KEY_NUMBER, FIELD(limits.q.pids), 1, 1, 65536},                           \
    {section, "file_size_mb", KEY_NUMBER, FIELD(limits.q.file_size_mb), 1, 1, TEBI_IN_M},       \
    {section, "open_files", KEY_NUMBER, FIELD(limits.q.open_files), 1, 8, 1 << 20},             \
    {section, "disk_mb", KEY_NUMBER, FIELD(limits.q.disk_mb), 1, 1, TEBI_IN_M},                 \
    {section, "output_kb", KEY_NUMBER, FIELD(limits.q.output_bytes), 1024, 1, 1 << 20},         \
    {section, "artifact_kb", KEY_NUMBER, FIELD(limits.q.artifact_bytes), 1024, 1, 1 << 20}

#define TENANT_QUOTA_KEYS(section, field)                                                          \
    {section, "cpu_seconds_per_minute", KEY_SECONDS, field(quota.cpu_ms_per_minute), 1, 1, WEEK_MS}, \
    {section, "max_inflight", KEY_NUMBER, field(quota.max_inflight), 1, 1, 65536}
/* clang-format on */

/* The upper bounds of [limits] together stay below AL_BUNDLE_BYTES_MAX, with inputs counted at five
 * times their size (what canonical form may make of them); those of args and env together stay
 * below what execve takes. */
static const struct al_config_key keys[] = {
    {"server", "listen", KEY_LISTEN, 0, 0, 0, 0, 0},
    {"server", "data_dir", KEY_ABSOLUTE_PATH, FIELD(data_dir), 0, 0, 0},
    {"server", "user", KEY_NAME, FIELD(user), 0, 0, 0},
    {"server", "launcher", KEY_OPTIONAL_PATH, FIELD(launcher), 0, 0, 0},
    {"server", "default_backend", KEY_NAME, FIELD(default_backend), 0, 0, 0},
    {"server", "run_slots", KEY_NUMBER, FIELD(run_slots), 1, 0, 4096},
    {"server", "stream_slots", KEY_NUMBER, FIELD(stream_slots), 1, 1, 65536},
    {"server", "queue_max", KEY_NUMBER, FIELD(queue_max), 1, 0, 1 << 20},
    {"server", "queue_tenant_max", KEY_NUMBER, FIELD(queue_tenant_max), 1, 0, 1 << 20},
    {"server", "ring_kb", KEY_NUMBER, FIELD(ring_bytes), 1024, 64, 65536},
    {"server", "stream_keep_kb", KEY_NUMBER, FIELD(stream_keep_bytes), 1024, 64, 65536},
    {"server", "linger_max_seconds", KEY_SECONDS, FIELD(linger_max_ms), 1, 0, 3600000},
    {"server", "output_memory_mb", KEY_NUMBER, FIELD(output_memory_mb), 1, 16, TEBI_IN_M},
    {"server", "job_history", KEY_NUMBER, FIELD(job_history), 1, 0, 1000000},
    {"server", "drain_seconds", KEY_SECONDS, FIELD(drain_ms), 1, 0, 3600000},

    {"limits", "code_kb", KEY_NUMBER, FIELD(limits.code_bytes), 1024, 1, 16 << 10},
    {"limits", "files_mb", KEY_NUMBER, FIELD(limits.files_bytes), 1 << 20, 0, 128},
    {"limits", "files", KEY_NUMBER, FIELD(limits.files), 1, 0, AL_FILES_MAX},
    {"limits", "stdin_kb", KEY_NUMBER, FIELD(limits.stdin_bytes), 1024, 0, 64 << 10},
    {"limits", "inputs_kb", KEY_NUMBER, FIELD(limits.inputs_bytes), 1024, 0, 4 << 10},
    {"limits", "metadata_kb", KEY_NUMBER, FIELD(limits.metadata_bytes), 1024, 0, 1024},
    {"limits", "env_kb", KEY_NUMBER, FIELD(limits.env_bytes), 1024, 0, 512},
    {"limits", "args", KEY_NUMBER, FIELD(limits.args), 1, 0, AL_ARGS_MAX},
    {"limits", "args_kb", KEY_NUMBER, FIELD(limits.args_bytes), 1024, 0, 512},
    {"limits", "deadline_margin_ms", KEY_NUMBER, FIELD(limits.deadline_margin_ms), 1, 0, 60000},

    QUOTA_KEYS("defaults", defaults),
    QUOTA_KEYS("maxima", maxima),

    TENANT_QUOTA_KEYS("quota", FIELD),
    {"quota", "tenants_max", KEY_NUMBER, FIELD(tenants_max), 1, 1, 1 << 20},
    TENANT_QUOTA_KEYS(AL_CONFIG_TENANT_PREFIX, TENANT_FIELD),

    {"gate", "mode", KEY_GATE_MODE, FIELD(gate_mode), 0, 0, 0},
    {"gate", "allow_warn", KEY_YES_NO, FIELD(gate_warn_allowed), 0, 0, 0},

    {"cache", "max_mb", KEY_NUMBER, FIELD(cache_max_mb), 1, 0, TEBI_IN_M},
    {"cache", "entry_max_kb", KEY_NUMBER, FIELD(cache_entry_max_kb), 1, 1, 16 << 10},
    {"cache", "max_age_seconds", KEY_SECONDS, FIELD(cache_max_age_ms), 1, 1000,
     3650 * DAY_S * 1000},

    {"records", "max_count", KEY_NUMBER, FIELD(records_max_count), 1, 1, 100000000},
    {"records", "max_mb", KEY_NUMBER, FIELD(records_max_mb), 1, 16, TEBI_IN_M},
    {"records", "max_age_days", KEY_DAYS, FIELD(records_max_age_ms), DAY_S, 10, 3650000},
};

#define N_KEYS (sizeof keys / sizeof keys[0])
_Static_assert(N_KEYS <= AL_CONFIG_KEYS_MAX, "raise AL_CONFIG_KEYS_MAX");

const struct al_config_key *al_config_key_find(const char *section, const char *name)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

size_t al_config_key_index(const struct al_config_key *key)
{
    return (size_t)(key - keys);
}

bool al_config_key_repeats(const struct al_config_key *key)
{
    return key->kind == KEY_LISTEN;
}

bool al_config_section_is_ours(const char *section)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].section, section) == 0) {
            return true;
        }
    }
    return false;
}

bool al_config_section_is_launchers(const char *section)
{
    return strcmp(section, "cells") == 0 || strcmp(section, "local") == 0 ||
           strcmp(section, "bubblewrap") == 0 || strcmp(section, "firejail") == 0 ||
           (strncmp(section, "runtime ", 8) == 0 && section[8] != '\0');
}

static void store_number(const struct al_config_key *key, void *to, uint64_t value)
{
    void *field = (char *)to + key->offset;
    if (key->size == sizeof(uint32_t)) {
        *(uint32_t *)field = (uint32_t)value;
    } else {
        *(uint64_t *)field = value;
    }
}

static int set_number(const struct al_config_key *key, void *to, const char *text,
                      struct al_err *err)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits] != '\0') {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s is not a whole number (%" PRId64 " to %" PRId64 ")",
                          al_quote(text).text, key->min, key->max);
    }
    uint64_t value = strtoull(text, NULL, 10);
    if (value < (uint64_t)key->min || value > (uint64_t)key->max) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%.20s is out of range (%" PRId64 " to %" PRId64 ")", text, key->min,
                          key->max);
    }
    store_number(key, to, value * key->unit);
    return 0;
}

/* Digits, then perhaps a point and more digits. Not strtod, which also takes nan, inf and hex. */
static bool parse_thousandths(const char *text, int64_t max, int64_t *ret)
{
    size_t whole = strspn(text, "0123456789");
    const char *fraction = text + whole + (text[whole] == '.');
    size_t decimals = strspn(fraction, "0123456789");
    if (whole == 0 || fraction[decimals] != '\0' || (text[whole] == '.' && decimals == 0)) {
        return false;
    }
    uint64_t ones = strtoull(text, NULL, 10);
    if (ones > (uint64_t)max) {
        *ret = INT64_MAX;
        return true;
    }
    int64_t thousandths = (int64_t)ones * 1000;
    int64_t weight = 100;
    for (size_t i = 0; i < decimals && weight > 0; i++, weight /= 10) {
        thousandths += (fraction[i] - '0') * weight;
    }
    *ret = thousandths;
    return true;
}

static int set_duration(const struct al_config_key *key, void *to, const char *text,
                        struct al_err *err)
{
    int64_t value;
    double min = (double)key->min / 1000;
    double max = (double)key->max / 1000;
    if (!parse_thousandths(text, key->max, &value)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s is not a number of %s (%g to %.10g)",
                          al_quote(text).text, key->kind == KEY_DAYS ? "days" : "seconds", min,
                          max);
    }
    if (value < key->min || value > key->max) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%.20s is out of range (%g to %.10g)", text,
                          min, max);
    }
    store_number(key, to, (uint64_t)value * key->unit);
    return 0;
}

static int set_yes_no(const struct al_config_key *key, void *to, const char *text,
                      struct al_err *err)
{
    bool yes = strcmp(text, "yes") == 0;
    if (!yes && strcmp(text, "no") != 0) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s is neither yes nor no",
                          al_quote(text).text);
    }
    *(bool *)((char *)to + key->offset) = yes;
    return 0;
}

static int set_gate_mode(const struct al_config_key *key, void *to, const char *text,
                         struct al_err *err)
{
    static const char *const words[] = {
        [AL_GATE_ENFORCE] = "enforce",
        [AL_GATE_WARN] = "warn",
        [AL_GATE_OFF] = "off",
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *(enum al_gate_mode *)((char *)to + key->offset) = (enum al_gate_mode)i;
            return 0;
        }
    }
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s is none of enforce, warn, off",
                      al_quote(text).text);
}

static int set_string(const struct al_config_key *key, void *to, const char *text,
                      struct al_err *err)
{
    size_t len = strlen(text);
    if (len >= key->size) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%zu bytes are too long (at most %zu)", len,
                          key->size - 1);
    }
    memcpy((char *)to + key->offset, text, len + 1);
    return 0;
}

static int set_path(const struct al_config_key *key, void *to, const char *text, struct al_err *err)
{
    bool may_be_empty = key->kind == KEY_OPTIONAL_PATH;
    if (text[0] != '/' && !(may_be_empty && text[0] == '\0')) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s is not an absolute path%s",
                          al_quote(text).text, may_be_empty ? " (nor empty)" : "");
    }
    return set_string(key, to, text, err);
}

static int set_name(const struct al_config_key *key, void *to, const char *text, struct al_err *err)
{
    size_t len = strlen(text);
    if (len == 0 || len > 64 || strspn(text, AL_CONFIG_NAME_CHARS) != len) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s is not a name (1 to 64 of %s)",
                          al_quote(text).text, "A-Za-z0-9._-");
    }
    return set_string(key, to, text, err);
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && text[digits] == '\0' && strtoul(text, NULL, 10) <= 65535;
}

static bool is_address(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!isgraph((unsigned char)*p)) {
            return false;
        }
    }
    if (strncmp(text, "unix:", 5) == 0) {
        size_t len = strlen(text + 5);
        return len > 0 && len < sizeof(((struct sockaddr_un *)NULL)->sun_path);
    }
    const char *colon = strrchr(text, ':');
    return colon && colon > text && is_port(colon + 1);
}

int al_config_add_listen(struct al_config *config, const char *address, struct al_err *err)
{
    size_t len = strlen(address);
    if (len >= AL_CONFIG_STRING_MAX || !is_address(address)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s is not an address (HOST:PORT with port 0 to 65535, or unix:PATH with "
                          "at most 107 bytes of path)",
                          al_quote(address).text);
    }
    if (config->n_listen == AL_LISTEN_MAX) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "more than %d addresses", AL_LISTEN_MAX);
    }
    memcpy(config->listen[config->n_listen++], address, len + 1);
    return 0;
}

int al_config_key_set(const struct al_config_key *key, void *to, const char *text,
                      struct al_err *err)
{
    switch (key->kind) {
    case KEY_LISTEN:
        return al_config_add_listen(to, text, err);
    case KEY_ABSOLUTE_PATH:
    case KEY_OPTIONAL_PATH:
        return set_path(key, to, text, err);
    case KEY_NAME:
        return set_name(key, to, text, err);
    case KEY_NUMBER:
        return set_number(key, to, text, err);
    case KEY_SECONDS:
    case KEY_DAYS:
        return set_duration(key, to, text, err);
    case KEY_YES_NO:
        return set_yes_no(key, to, text, err);
    case KEY_GATE_MODE:
        return set_gate_mode(key, to, text, err);
    }
    return al_err_set(err, AL_ERR_INTERNAL, "a key of unknown kind");
}
