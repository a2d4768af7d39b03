#include "client/option_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "client/number.h"
#include "proto/wire/utf8.h"

#define TENANT_MAX  128
#define SECONDS_MAX 1000000
#define MIB_MAX     (1024 * 1024)
#define PIDS_MAX    (1024 * 1024)

#define ANY (~0U)
#define RUN (1U << AL_COMMAND_RUN | 1U << AL_COMMAND_STREAM)

static int check_tenant(const char *what, const char *value, struct al_err *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (strlen(value) > TENANT_MAX || value[strspn(value, allowed)] != '\0') {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: '%s' is not 1 to %d of A-Za-z0-9._-",
                          what, value, TENANT_MAX);
    }
    return 0;
}

static int check_env(const char *what, const char *value, struct al_err *err)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: '%s' is not of the form NAME=VALUE",
                          what, value);
    }
    return 0;
}

static int check_file(const char *what, const char *value, struct al_err *err)
{
    const char *colon = strrchr(value, ':');
    if (!colon || colon == value || colon[1] == '\0') {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: '%s' is not of the form HOST:SANDBOX",
                          what, value);
    }
    return 0;
}

static int check_inputs(const char *what, const char *value, struct al_err *err)
{
    json_error_t why;
    json_t *json = json_loads(value, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    bool is_object = json_is_object(json);
    if (!json) {
        al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: not JSON: line %d, column %d: %s", what,
                   why.line, why.column, why.text);
    } else if (!is_object) {
        al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: not a JSON object, as in {\"key\": 1}", what);
    }
    json_decref(json);
    return is_object ? 0 : -EINVAL;
}

#define AT(field)     offsetof(struct al_options, field)
#define RUN_AT(field) offsetof(struct al_options, run.field)

const struct al_option_row al_option_rows[] = {
    {"help", 'h', AL_OPTION_FLAG, ANY, AT(help), 0, NULL},
    {"version", 0, AL_OPTION_FLAG, ANY, AT(version), 0, NULL},
    {"json", 0, AL_OPTION_FLAG, ANY, AT(json), 0, NULL},
    {"server", 0, AL_OPTION_STRING, ANY, AT(server), 0, NULL},
    {"tenant", 0, AL_OPTION_STRING, ANY, AT(tenant), 0, check_tenant},
    {"timeout", 0, AL_OPTION_MS, ANY, AT(timeout_ms), SECONDS_MAX, NULL},
    {"language", 'l', AL_OPTION_STRING, RUN, RUN_AT(language), 0, NULL},
    {"code", 'e', AL_OPTION_TEXT, RUN, RUN_AT(code), 0, NULL},
    {"file", 0, AL_OPTION_LIST, RUN, RUN_AT(files), 0, check_file},
    {"env", 0, AL_OPTION_LIST, RUN, RUN_AT(env), 0, check_env},
    {"stdin", 0, AL_OPTION_FLAG, RUN, RUN_AT(forward_stdin), 0, NULL},
    {"inputs", 0, AL_OPTION_STRING, RUN, RUN_AT(inputs), 0, check_inputs},
    {"workdir", 0, AL_OPTION_STRING, RUN, RUN_AT(workdir), 0, NULL},
    {"backend", 0, AL_OPTION_STRING, RUN, RUN_AT(backend), 0, NULL},
    {"allow", 0, AL_OPTION_LIST, RUN, RUN_AT(hosts), 0, NULL},
    {"memory", 0, AL_OPTION_UINT32, RUN, RUN_AT(memory_mb), MIB_MAX, NULL},
    {"disk", 0, AL_OPTION_UINT32, RUN, RUN_AT(disk_mb), MIB_MAX, NULL},
    {"pids", 0, AL_OPTION_UINT32, RUN, RUN_AT(pids), PIDS_MAX, NULL},
    {"wall", 0, AL_OPTION_SECONDS, RUN, RUN_AT(wall_seconds), SECONDS_MAX, NULL},
    {"cpu", 0, AL_OPTION_SECONDS, RUN, RUN_AT(cpu_seconds), SECONDS_MAX, NULL},
    {"artifact", 0, AL_OPTION_LIST, RUN, RUN_AT(globs), 0, NULL},
    {"out", 0, AL_OPTION_STRING, RUN, RUN_AT(out), 0, NULL},
    {"no-cache", 0, AL_OPTION_FLAG, RUN, RUN_AT(no_cache), 0, NULL},
    {"stats", 0, AL_OPTION_FLAG, RUN, RUN_AT(stats), 0, NULL},
};

const size_t al_option_rows_count = sizeof al_option_rows / sizeof *al_option_rows;

int al_option_check_utf8(const char *what, const char *value, struct al_err *err)
{
    size_t len = strlen(value);
    if (al_utf8_valid_prefix((const uint8_t *)value, len) < len) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: not valid UTF-8", what);
    }
    return 0;
}

static int check_value(const struct al_option_row *row, const char *what, const char *value,
                       struct al_err *err)
{
    if (row->kind == AL_OPTION_TEXT) {
        return 0;
    }
    if (*value == '\0') {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: the value is empty", what);
    }
    int rc = al_option_check_utf8(what, value, err);
    return rc < 0 || !row->check ? rc : row->check(what, value, err);
}

static int store_ms(const char *what, const char *value, uint32_t max, int64_t *ret,
                    struct al_err *err)
{
    double seconds;
    int rc = al_number_double(what, value, max, &seconds, err);
    if (rc == 0) {
        int64_t ms = (int64_t)(seconds * 1000);
        *ret = ms == 0 && seconds > 0 ? 1 : ms;
    }
    return rc;
}

int al_option_apply(const struct al_option_row *row, const char *value, struct al_options *options,
                    struct al_err *err)
{
    void *place = (char *)options + row->offset;
    struct al_strings *list = place;
    char what[32];
    snprintf(what, sizeof what, "--%s", row->name);
    if (row->kind != AL_OPTION_FLAG) {
        int rc = check_value(row, what, value, err);
        if (rc < 0) {
            return rc;
        }
    }
    switch (row->kind) {
    case AL_OPTION_FLAG:
        *(bool *)place = true;
        return 0;
    case AL_OPTION_TEXT:
        if (*(const char **)place) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s: given twice", what);
        }
        *(const char **)place = value;
        return 0;
    case AL_OPTION_STRING:
        *(const char **)place = value;
        return 0;
    case AL_OPTION_LIST:
        list->items[list->n++] = value;
        return 0;
    case AL_OPTION_UINT32:
        return al_number_uint32(what, value, row->max, place, err);
    case AL_OPTION_SECONDS:
        return al_number_double(what, value, row->max, place, err);
    case AL_OPTION_MS:
        return store_ms(what, value, row->max, place, err);
    }
    return 0;
}
