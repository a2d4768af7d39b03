#include "client/option_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "client/number.h"
#include "proto/airlock/v1/execution.pb-c.h"
#include "proto/wire/utf8.h"

#define TENANT_MAX  128
#define SECONDS_MAX 1000000
#define MIB_MAX     (1024 * 1024)
#define PIDS_MAX    (1024 * 1024)
#define JOBS_MAX    1000 /* of one page, by the proto */

#define ANY    (~0U)
#define RUN    (1U << AL_COMMAND_RUN | 1U << AL_COMMAND_STREAM)
#define ONCE   (1U << AL_COMMAND_RUN)
#define JOBS   (1U << AL_COMMAND_JOBS)
#define STREAM (1U << AL_COMMAND_STREAM)
#define ATTACH (1U << AL_COMMAND_ATTACH)

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
    {"help", AT(help), NULL, AL_OPTION_FLAG, ANY, 0, 'h'},
    {"version", AT(version), NULL, AL_OPTION_FLAG, ANY, 0, 0},
    {"json", AT(json), NULL, AL_OPTION_FLAG, ANY, 0, 0},
    {"server", AT(server), NULL, AL_OPTION_STRING, ANY, 0, 0},
    {"tenant", AT(tenant), check_tenant, AL_OPTION_STRING, ANY, 0, 0},
    {"timeout", AT(timeout_ms), NULL, AL_OPTION_MS, ANY, SECONDS_MAX, 0},
    {"language", RUN_AT(language), NULL, AL_OPTION_STRING, RUN, 0, 'l'},
    {"code", RUN_AT(code), NULL, AL_OPTION_TEXT, RUN, 0, 'e'},
    {"file", RUN_AT(files), check_file, AL_OPTION_LIST, RUN, 0, 0},
    {"env", RUN_AT(env), check_env, AL_OPTION_LIST, RUN, 0, 0},
    {"stdin", RUN_AT(forward_stdin), NULL, AL_OPTION_FLAG, RUN | ATTACH, 0, 0},
    {"tty", RUN_AT(tty), NULL, AL_OPTION_FLAG, STREAM | ATTACH, 0, 't'},
    {"linger", RUN_AT(linger_seconds), NULL, AL_OPTION_SECONDS, STREAM, SECONDS_MAX, 0},
    {"after", AT(after_sequence), NULL, AL_OPTION_UINT32, ATTACH, UINT32_MAX, 0},
    {"inputs", RUN_AT(inputs), check_inputs, AL_OPTION_STRING, RUN, 0, 0},
    {"workdir", RUN_AT(workdir), NULL, AL_OPTION_STRING, RUN, 0, 0},
    {"backend", RUN_AT(backend), NULL, AL_OPTION_STRING, RUN, 0, 0},
    {"allow", RUN_AT(hosts), NULL, AL_OPTION_LIST, RUN, 0, 0},
    {"memory", RUN_AT(memory_mb), NULL, AL_OPTION_UINT32, RUN, MIB_MAX, 0},
    {"disk", RUN_AT(disk_mb), NULL, AL_OPTION_UINT32, RUN, MIB_MAX, 0},
    {"pids", RUN_AT(pids), NULL, AL_OPTION_UINT32, RUN, PIDS_MAX, 0},
    {"wall", RUN_AT(wall_seconds), NULL, AL_OPTION_SECONDS, RUN, SECONDS_MAX, 0},
    {"cpu", RUN_AT(cpu_seconds), NULL, AL_OPTION_SECONDS, RUN, SECONDS_MAX, 0},
    {"artifact", RUN_AT(globs), NULL, AL_OPTION_LIST, RUN, 0, 0},
    {"out", RUN_AT(out), NULL, AL_OPTION_STRING, RUN | ATTACH, 0, 0},
    {"no-cache", RUN_AT(no_cache), NULL, AL_OPTION_FLAG, RUN, 0, 0},
    {"follow", RUN_AT(follow), NULL, AL_OPTION_FLAG, ONCE, 0, 0},
    {"stats", RUN_AT(stats), NULL, AL_OPTION_FLAG, RUN | ATTACH, 0, 0},
    {"status", AT(jobs.status), NULL, AL_OPTION_STATUS, JOBS, 0, 0},
    {"limit", AT(jobs.limit), NULL, AL_OPTION_UINT32, JOBS, JOBS_MAX, 0},
    {"page", AT(jobs.page), NULL, AL_OPTION_STRING, JOBS, 0, 0},
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

static int store_status(const char *what, const char *value, int *ret, struct al_err *err)
{
    static const char *const words[] = {
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_PENDING] = "pending",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_RUNNING] = "running",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_SUCCEEDED] = "succeeded",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_FAILED] = "failed",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_TIMEOUT] = "timeout",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_KILLED] = "killed",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_QUOTA_EXCEEDED] = "quota_exceeded",
        [AIRLOCK__V1__JOB_STATUS__JOB_STATUS_EGRESS_BLOCKED] = "egress_blocked",
    };
    for (size_t i = 1; i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0) {
            *ret = (int)i;
            return 0;
        }
    }
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                      "%s: '%s' is none of pending, running, succeeded, failed, timeout, killed, "
                      "quota_exceeded and egress_blocked",
                      what, value);
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
    case AL_OPTION_STATUS:
        return store_status(what, value, place, err);
    }
    return 0;
}
