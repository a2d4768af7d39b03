#include "backends/launcher/message.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- one value of each message --- */

static const struct al_msg_spawn spawn = {.kind = AL_CELL_LOCAL,
                                          .job_id = "0123456789abcdef",
                                          .runtime = "python@3.11.2",
                                          .workdir = "/sandbox",
                                          .quotas = {.cpu_ms = 1,
                                                     .wall_ms = 2,
                                                     .memory_mb = 3,
                                                     .pids = 4,
                                                     .file_size_mb = 5,
                                                     .open_files = 6,
                                                     .disk_mb = 7,
                                                     .artifact_bytes = 8}};
static const struct al_msg_refused refused = {.text = "no"};
static const struct al_msg_compiled compiled = {.wait_status = 0x8b, .duration_us = 1234};
static const struct al_msg_exit exit_message = {.ran = true,
                                                .wait_status = 0xff00,
                                                .limit = AL_LIMIT_WALL,
                                                .killed = true,
                                                .prestarted = true,
                                                .oom_kills = 1,
                                                .pids_denied = UINT32_MAX,
                                                .duration_us = 5,
                                                .cpu_us = 6,
                                                .memory_peak_bytes = UINT64_MAX,
                                                .pids_peak = 7,
                                                .layers = (1u << AL_LAYER_COUNT) - 1,
                                                .error = "why"};
static const struct al_msg_signal signal_message = {.signo = 31};
static const struct al_msg_usage usage = {.cpu_us = 1500000};

static const struct al_msg_hello *hello(void)
{
    static struct al_msg_hello m = {
        .cells = {{.available = true, .layers = 5, .version = "1"}, {.reason = "because"}},
        .n_runtimes = 2};
    m.runtimes[0] = (struct al_msg_runtime){.name = "python",
                                            .version = "3.11.2",
                                            .aliases = {"python3", "py"},
                                            .code_file = "main.py"};
    m.runtimes[1] = (struct al_msg_runtime){
        .name = "ts", .version = "1", .code_file = "main.ts", .output_file = "main.js"};
    return &m;
}

/* --- encode, decode and compare by type --- */

static size_t encode(enum al_msg_type type, void *data)
{
    switch (type) {
    case AL_MSG_HELLO:
        return al_msg_encode_hello(hello(), data);
    case AL_MSG_SPAWN:
        return al_msg_encode_spawn(&spawn, data);
    case AL_MSG_REFUSED:
        return al_msg_encode_refused(&refused, data);
    case AL_MSG_COMPILED:
        return al_msg_encode_compiled(&compiled, data);
    case AL_MSG_EXIT:
        return al_msg_encode_exit(&exit_message, data);
    case AL_MSG_SIGNAL:
        return al_msg_encode_signal(&signal_message, data);
    case AL_MSG_USAGE:
        return al_msg_encode_usage(&usage, data);
    case AL_MSG_SPAWNED:
    case AL_MSG_STARTED:
    case AL_MSG_KILL:
        return al_msg_encode_empty(type, data);
    }
    return 0;
}

union message {
    struct al_msg_hello hello;
    struct al_msg_spawn spawn;
    struct al_msg_refused refused;
    struct al_msg_compiled compiled;
    struct al_msg_exit exit;
    struct al_msg_signal signal;
    struct al_msg_usage usage;
};

static int decode(enum al_msg_type type, const void *data, size_t len, union message *m)
{
    switch (type) {
    case AL_MSG_HELLO:
        return al_msg_decode_hello(data, len, &m->hello);
    case AL_MSG_SPAWN:
        return al_msg_decode_spawn(data, len, &m->spawn);
    case AL_MSG_REFUSED:
        return al_msg_decode_refused(data, len, &m->refused);
    case AL_MSG_COMPILED:
        return al_msg_decode_compiled(data, len, &m->compiled);
    case AL_MSG_EXIT:
        return al_msg_decode_exit(data, len, &m->exit);
    case AL_MSG_SIGNAL:
        return al_msg_decode_signal(data, len, &m->signal);
    case AL_MSG_USAGE:
        return al_msg_decode_usage(data, len, &m->usage);
    case AL_MSG_SPAWNED:
    case AL_MSG_STARTED:
    case AL_MSG_KILL:
        return al_msg_decode_empty(type, data, len);
    }
    return -EINVAL;
}

/* In a block of exactly that length, so that a read beyond its end is seen by sanitizers. */
static int decode_exact(enum al_msg_type type, const void *data, size_t len, union message *m)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    assert_non_null(exact);
    memcpy(exact, data, len);
    int rc = decode(type, exact, len, m);
    free(exact);
    return rc;
}

static void assert_same_quotas(const struct al_quotas *a, const struct al_quotas *b)
{
    assert_int_equal(a->cpu_ms, b->cpu_ms);
    assert_int_equal(a->wall_ms, b->wall_ms);
    assert_int_equal(a->memory_mb, b->memory_mb);
    assert_int_equal(a->pids, b->pids);
    assert_int_equal(a->file_size_mb, b->file_size_mb);
    assert_int_equal(a->open_files, b->open_files);
    assert_int_equal(a->disk_mb, b->disk_mb);
    assert_int_equal(a->artifact_bytes, b->artifact_bytes);
}

static void assert_same_exit(const struct al_msg_exit *a, const struct al_msg_exit *b)
{
    assert_int_equal(a->ran, b->ran);
    assert_int_equal(a->wait_status, b->wait_status);
    assert_int_equal(a->limit, b->limit);
    assert_int_equal(a->killed, b->killed);
    assert_int_equal(a->prestarted, b->prestarted);
    assert_int_equal(a->oom_kills, b->oom_kills);
    assert_int_equal(a->pids_denied, b->pids_denied);
    assert_int_equal(a->duration_us, b->duration_us);
    assert_int_equal(a->cpu_us, b->cpu_us);
    assert_true(a->memory_peak_bytes == b->memory_peak_bytes);
    assert_int_equal(a->pids_peak, b->pids_peak);
    assert_int_equal(a->layers, b->layers);
    assert_string_equal(a->error, b->error);
}

static void assert_same_runtime(const struct al_msg_runtime *a, const struct al_msg_runtime *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->version, b->version);
    for (size_t i = 0; i < AL_LANGUAGE_ALIASES_MAX; i++) {
        assert_string_equal(a->aliases[i], b->aliases[i]);
    }
    assert_string_equal(a->code_file, b->code_file);
    assert_string_equal(a->output_file, b->output_file);
}

static void assert_same_hello(const struct al_msg_hello *a, const struct al_msg_hello *b)
{
    for (size_t i = 0; i < AL_CELL_KINDS; i++) {
        assert_int_equal(a->cells[i].available, b->cells[i].available);
        assert_int_equal(a->cells[i].layers, b->cells[i].layers);
        assert_string_equal(a->cells[i].version, b->cells[i].version);
        assert_string_equal(a->cells[i].reason, b->cells[i].reason);
    }
    assert_int_equal(a->n_runtimes, b->n_runtimes);
    for (size_t i = 0; i < a->n_runtimes; i++) {
        assert_same_runtime(&a->runtimes[i], &b->runtimes[i]);
    }
}

static void assert_round_trip(enum al_msg_type type, const union message *m)
{
    if (type == AL_MSG_HELLO) {
        assert_same_hello(&m->hello, hello());
    } else if (type == AL_MSG_SPAWN) {
        assert_int_equal(m->spawn.kind, spawn.kind);
        assert_string_equal(m->spawn.job_id, spawn.job_id);
        assert_string_equal(m->spawn.runtime, spawn.runtime);
        assert_string_equal(m->spawn.workdir, spawn.workdir);
        assert_same_quotas(&m->spawn.quotas, &spawn.quotas);
    } else if (type == AL_MSG_REFUSED) {
        assert_string_equal(m->refused.text, refused.text);
    } else if (type == AL_MSG_COMPILED) {
        assert_int_equal(m->compiled.wait_status, compiled.wait_status);
        assert_int_equal(m->compiled.duration_us, compiled.duration_us);
    } else if (type == AL_MSG_EXIT) {
        assert_same_exit(&m->exit, &exit_message);
    } else if (type == AL_MSG_SIGNAL) {
        assert_int_equal(m->signal.signo, signal_message.signo);
    } else if (type == AL_MSG_USAGE) {
        assert_int_equal(m->usage.cpu_us, usage.cpu_us);
    }
}

/* --- for every type --- */

static const enum al_msg_type *type_of(void **state)
{
    return *state;
}

static void test_round_trip(void **state)
{
    enum al_msg_type type = *type_of(state);
    uint8_t data[AL_MSG_BYTES_MAX];
    static union message m;
    memset(&m, 0x5a, sizeof m);
    size_t n = encode(type, data);
    assert_in_range(n, 2, AL_MSG_BYTES_MAX);
    assert_int_equal(al_msg_type(data, n), type);
    assert_int_equal(decode_exact(type, data, n, &m), 0);
    assert_round_trip(type, &m);
}

static void test_cut_at_every_byte(void **state)
{
    enum al_msg_type type = *type_of(state);
    uint8_t data[AL_MSG_BYTES_MAX];
    static union message m;
    size_t n = encode(type, data);
    for (size_t len = 0; len < n; len++) {
        assert_int_equal(decode_exact(type, data, len, &m), -EBADMSG);
    }
}

static void test_trailing_byte(void **state)
{
    enum al_msg_type type = *type_of(state);
    uint8_t data[AL_MSG_BYTES_MAX];
    static union message m;
    size_t n = encode(type, data);
    data[n] = 0;
    assert_int_equal(decode_exact(type, data, n + 1, &m), -EBADMSG);
}

static void test_other_types(void **state)
{
    enum al_msg_type type = *type_of(state);
    uint8_t data[AL_MSG_BYTES_MAX];
    static union message m;
    size_t n = encode(type, data);
    for (unsigned other = 0; other < 12; other++) {
        uint16_t wire = htole16((uint16_t)other);
        memcpy(data, &wire, sizeof wire);
        assert_int_equal(decode_exact(type, data, n, &m), other == type ? 0 : -EBADMSG);
    }
}

/* --- the fuzzer's seeds --- */

#define SEEDS "tests/fuzz/corpus/message"

static bool is_message(const uint8_t *data, size_t len)
{
    static union message m;
    return decode_exact(al_msg_type(data, len), data, len, &m) == 0;
}

/* One that a change of the codec has left behind fuzzes nothing. */
static void test_seeds__are_messages(void **state)
{
    (void)state;
    DIR *d = opendir(SEEDS);
    int n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        static uint8_t data[AL_MSG_BYTES_MAX];
        char path[sizeof SEEDS + sizeof e->d_name + 1];
        snprintf(path, sizeof path, "%s/%s", SEEDS, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f && !is_message(data, fread(data, 1, sizeof data, f))) {
            fail_msg("%s is no message", path);
        }
        n += f ? fclose(f) == 0 : 0;
    }
    closedir(d);
    assert_true(n >= AL_MSG_USAGE);
}

/* --- a byte string put in the place of a field --- */

struct bad_row {
    const char *name;
    enum al_msg_type type;
    uint16_t at; /* offset of what is replaced */
    uint16_t width;
    uint64_t value;
    bool accepted;
};

/* Offsets of the messages above; the strings of `spawn` are 16, 13 and 8 bytes long. */
enum {
    SPAWN_KIND = 2,
    SPAWN_JOB_ID_LEN = 6,
    SPAWN_JOB_ID = 8,
    SPAWN_RUNTIME_LEN = 24,
    SPAWN_RUNTIME = 26,
    SPAWN_WORKDIR_LEN = 39,
    SPAWN_WORKDIR = 41,
    SPAWN_ROWS = 49,
    SPAWN_COLS = 53,
    SPAWN_PRESTART = 57,
    SPAWN_CPU = 61,
    SPAWN_WALL = 69,
    SPAWN_MEMORY = 77,
    SPAWN_PIDS = 81,
    SPAWN_FILE_SIZE = 85,
    SPAWN_OPEN_FILES = 89,
    SPAWN_DISK = 93,
    SPAWN_ARTIFACTS = 97,
    EXIT_RAN = 2,
    EXIT_WAIT_STATUS = 6,
    EXIT_LIMIT = 10,
    EXIT_KILLED = 14,
    EXIT_PRESTARTED = 18,
    EXIT_DURATION = 30,
    EXIT_CPU = 38,
    EXIT_LAYERS = 58,
    EXIT_ERROR_LEN = 62,
    EXIT_ERROR = 64,
    HELLO_AVAILABLE = 2,
    HELLO_LAYERS = 6,
    HELLO_VERSION_LEN = 10,
    HELLO_REASON_LEN = 13,
    HELLO_N_RUNTIMES = 34 + 12 * (AL_CELL_KINDS - 2), /* further kinds are empty */
    HELLO_NAME_LEN = HELLO_N_RUNTIMES + 4,
    HELLO_NAME = HELLO_N_RUNTIMES + 6,
};

#define TIME_US_MAX ((uint64_t)1 << 53)
#define TIME_MS_MAX (TIME_US_MAX / 1000)

static const struct bad_row bad_rows[] = {
    {"spawn/kind_largest", AL_MSG_SPAWN, SPAWN_KIND, 4, AL_CELL_KINDS - 1, true},
    {"spawn/kind_unknown", AL_MSG_SPAWN, SPAWN_KIND, 4, AL_CELL_KINDS, false},
    {"spawn/kind_negative", AL_MSG_SPAWN, SPAWN_KIND, 4, UINT32_MAX, false},
    {"spawn/job_id_empty", AL_MSG_SPAWN, SPAWN_JOB_ID_LEN, 2, 0, false},
    {"spawn/job_id_too_long", AL_MSG_SPAWN, SPAWN_JOB_ID_LEN, 2, 17, false},
    {"spawn/job_id_longer_than_the_message", AL_MSG_SPAWN, SPAWN_JOB_ID_LEN, 2, 0xffff, false},
    {"spawn/job_id_upper_case", AL_MSG_SPAWN, SPAWN_JOB_ID, 1, 'A', false},
    {"spawn/job_id_slash", AL_MSG_SPAWN, SPAWN_JOB_ID, 1, '/', false},
    {"spawn/job_id_dots", AL_MSG_SPAWN, SPAWN_JOB_ID, 2, 0x2e2e, false},
    {"spawn/job_id_nul", AL_MSG_SPAWN, SPAWN_JOB_ID + 15, 1, 0, false},
    {"spawn/runtime_nul", AL_MSG_SPAWN, SPAWN_RUNTIME + 12, 1, 0, false},
    {"spawn/runtime_nul_first", AL_MSG_SPAWN, SPAWN_RUNTIME, 1, 0, false},
    {"spawn/runtime_too_long", AL_MSG_SPAWN, SPAWN_RUNTIME_LEN, 2, 128, false},
    {"spawn/workdir_nul", AL_MSG_SPAWN, SPAWN_WORKDIR + 4, 1, 0, false},
    {"spawn/workdir_too_long", AL_MSG_SPAWN, SPAWN_WORKDIR_LEN, 2, 256, false},
    {"spawn/rows_most", AL_MSG_SPAWN, SPAWN_ROWS, 4, UINT16_MAX, true},
    {"spawn/rows_too_many", AL_MSG_SPAWN, SPAWN_ROWS, 4, UINT16_MAX + 1, false},
    {"spawn/cols_too_many", AL_MSG_SPAWN, SPAWN_COLS, 4, UINT16_MAX + 1, false},
    {"spawn/prestart_all_kinds", AL_MSG_SPAWN, SPAWN_PRESTART, 4, (1 << AL_PRESTART_KINDS) - 1,
     true},
    {"spawn/prestart_unknown_kind", AL_MSG_SPAWN, SPAWN_PRESTART, 4, 1 << AL_PRESTART_KINDS, false},
    {"spawn/cpu_none", AL_MSG_SPAWN, SPAWN_CPU, 8, 0, false},
    {"spawn/cpu_most", AL_MSG_SPAWN, SPAWN_CPU, 8, TIME_MS_MAX, true},
    {"spawn/cpu_too_much", AL_MSG_SPAWN, SPAWN_CPU, 8, TIME_MS_MAX + 1, false},
    {"spawn/cpu_negative", AL_MSG_SPAWN, SPAWN_CPU, 8, UINT64_MAX, false},
    {"spawn/wall_none", AL_MSG_SPAWN, SPAWN_WALL, 8, 0, false},
    {"spawn/wall_too_much", AL_MSG_SPAWN, SPAWN_WALL, 8, TIME_MS_MAX + 1, false},
    {"spawn/memory_none", AL_MSG_SPAWN, SPAWN_MEMORY, 4, 0, false},
    {"spawn/pids_none", AL_MSG_SPAWN, SPAWN_PIDS, 4, 0, false},
    {"spawn/file_size_none", AL_MSG_SPAWN, SPAWN_FILE_SIZE, 4, 0, false},
    {"spawn/open_files_none", AL_MSG_SPAWN, SPAWN_OPEN_FILES, 4, 0, false},
    {"spawn/disk_none", AL_MSG_SPAWN, SPAWN_DISK, 4, 0, false},
    {"spawn/artifacts_none", AL_MSG_SPAWN, SPAWN_ARTIFACTS, 8, 0, true},
    {"spawn/artifacts_most", AL_MSG_SPAWN, SPAWN_ARTIFACTS, 8, AL_ARTIFACT_BYTES_MAX, true},
    {"spawn/artifacts_too_much", AL_MSG_SPAWN, SPAWN_ARTIFACTS, 8, AL_ARTIFACT_BYTES_MAX + 1,
     false},
    {"exit/ran_not_a_bool", AL_MSG_EXIT, EXIT_RAN, 4, 2, false},
    {"exit/wait_status_most", AL_MSG_EXIT, EXIT_WAIT_STATUS, 4, UINT16_MAX, true},
    {"exit/wait_status_too_large", AL_MSG_EXIT, EXIT_WAIT_STATUS, 4, UINT16_MAX + 1, false},
    {"exit/limit_cpu", AL_MSG_EXIT, EXIT_LIMIT, 4, AL_LIMIT_CPU, true},
    {"exit/limit_memory_is_airlockds_to_say", AL_MSG_EXIT, EXIT_LIMIT, 4, AL_LIMIT_MEMORY, false},
    {"exit/limit_unknown", AL_MSG_EXIT, EXIT_LIMIT, 4, 99, false},
    {"exit/killed_not_a_bool", AL_MSG_EXIT, EXIT_KILLED, 4, 0x100, false},
    {"exit/prestarted_not_a_bool", AL_MSG_EXIT, EXIT_PRESTARTED, 4, 2, false},
    {"exit/duration_most", AL_MSG_EXIT, EXIT_DURATION, 8, TIME_US_MAX, true},
    {"exit/duration_negative", AL_MSG_EXIT, EXIT_DURATION, 8, UINT64_MAX, false},
    {"exit/cpu_too_much", AL_MSG_EXIT, EXIT_CPU, 8, TIME_US_MAX + 1, false},
    {"exit/layers_unknown", AL_MSG_EXIT, EXIT_LAYERS, 4, 1u << AL_LAYER_COUNT, false},
    {"exit/error_too_long", AL_MSG_EXIT, EXIT_ERROR_LEN, 2, AL_RESULT_ERROR_MAX, false},
    {"exit/error_nul", AL_MSG_EXIT, EXIT_ERROR, 1, 0, false},
    {"hello/available_not_a_bool", AL_MSG_HELLO, HELLO_AVAILABLE, 4, 2, false},
    {"hello/layers_unknown", AL_MSG_HELLO, HELLO_LAYERS, 4, 1u << 31, false},
    {"hello/reason_too_long", AL_MSG_HELLO, HELLO_REASON_LEN, 2, AL_UNAVAILABLE_MAX, false},
    {"hello/fewer_runtimes_than_follow", AL_MSG_HELLO, HELLO_N_RUNTIMES, 4, 1, false},
    {"hello/more_runtimes_than_follow", AL_MSG_HELLO, HELLO_N_RUNTIMES, 4, 3, false},
    {"hello/too_many_runtimes", AL_MSG_HELLO, HELLO_N_RUNTIMES, 4, AL_RUNTIMES_MAX + 1, false},
    {"hello/huge_number_of_runtimes", AL_MSG_HELLO, HELLO_N_RUNTIMES, 4, UINT32_MAX, false},
    {"hello/name_too_long", AL_MSG_HELLO, HELLO_NAME_LEN, 2, AL_RUNTIME_NAME_MAX, false},
    {"hello/name_nul", AL_MSG_HELLO, HELLO_NAME + 5, 1, 0, false},
    {"refused/text_too_long", AL_MSG_REFUSED, 2, 2, AL_RESULT_ERROR_MAX, false},
    {"refused/text_nul", AL_MSG_REFUSED, 5, 1, 0, false},
    {"compiled/status_too_large", AL_MSG_COMPILED, 2, 4, UINT16_MAX + 1, false},
    {"compiled/duration_too_large", AL_MSG_COMPILED, 6, 8, TIME_US_MAX + 1, false},
    {"signal/zero", AL_MSG_SIGNAL, 2, 4, 0, false},
    {"signal/least", AL_MSG_SIGNAL, 2, 4, 1, true},
    {"signal/real_time", AL_MSG_SIGNAL, 2, 4, 32, false},
    {"signal/negative", AL_MSG_SIGNAL, 2, 4, UINT32_MAX, false},
    {"usage/too_large", AL_MSG_USAGE, 2, 8, TIME_US_MAX + 1, false},
};

static void test_field(void **state)
{
    const struct bad_row *row = *state;
    uint8_t data[AL_MSG_BYTES_MAX];
    static union message m;
    size_t n = encode(row->type, data);
    uint64_t value = htole64(row->value);
    assert_true(row->at + row->width <= n);
    memcpy(data + row->at, &value, row->width);
    assert_int_equal(decode_exact(row->type, data, n, &m), row->accepted ? 0 : -EBADMSG);
}

/* --- the largest and the emptiest --- */

static void fill(char *text, size_t size)
{
    memset(text, 'x', size - 1);
    text[size - 1] = '\0';
}

static void test_hello__largest_fits(void **state)
{
    (void)state;
    static struct al_msg_hello full, got;
    static uint8_t data[AL_MSG_BYTES_MAX];
    for (size_t i = 0; i < AL_CELL_KINDS; i++) {
        fill(full.cells[i].version, sizeof full.cells[i].version);
        fill(full.cells[i].reason, sizeof full.cells[i].reason);
    }
    full.n_runtimes = AL_RUNTIMES_MAX;
    for (size_t i = 0; i < AL_RUNTIMES_MAX; i++) {
        struct al_msg_runtime *rt = &full.runtimes[i];
        fill(rt->name, sizeof rt->name);
        fill(rt->version, sizeof rt->version);
        fill(rt->code_file, sizeof rt->code_file);
        fill(rt->output_file, sizeof rt->output_file);
        for (size_t k = 0; k < AL_LANGUAGE_ALIASES_MAX; k++) {
            fill(rt->aliases[k], sizeof rt->aliases[k]);
        }
    }
    size_t n = al_msg_encode_hello(&full, data);
    assert_int_equal(al_msg_decode_hello(data, n, &got), 0);
    assert_same_hello(&got, &full);
}

static void test_hello__runtime_needs_name_version_and_file(void **state)
{
    (void)state;
    static uint8_t data[AL_MSG_BYTES_MAX];
    static struct al_msg_hello m, got;
    for (size_t i = 0; i < 3; i++) {
        m = *hello();
        char *const fields[] = {m.runtimes[1].name, m.runtimes[1].version, m.runtimes[1].code_file};
        fields[i][0] = '\0';
        size_t n = al_msg_encode_hello(&m, data);
        assert_int_equal(al_msg_decode_hello(data, n, &got), -EBADMSG);
    }
}

static void test_decode__longer_than_any_message(void **state)
{
    (void)state;
    static uint8_t data[AL_MSG_BYTES_MAX + 1];
    static union message m;
    data[0] = AL_MSG_KILL;
    assert_int_equal(al_msg_decode_empty(AL_MSG_KILL, data, sizeof data), -EBADMSG);
    data[0] = AL_MSG_REFUSED;
    assert_int_equal(al_msg_decode_refused(data, sizeof data, &m.refused), -EBADMSG);
}

static void test_type__of_too_little(void **state)
{
    (void)state;
    assert_int_equal(al_msg_type("", 0), 0);
    assert_int_equal(al_msg_type("\1", 1), 0);
    assert_int_equal(al_msg_type("\1\2", 2), 0x201);
}

static const enum al_msg_type types[] = {
    AL_MSG_HELLO,    AL_MSG_SPAWN, AL_MSG_SPAWNED, AL_MSG_REFUSED, AL_MSG_STARTED,
    AL_MSG_COMPILED, AL_MSG_EXIT,  AL_MSG_KILL,    AL_MSG_SIGNAL,  AL_MSG_USAGE};
static const char *const type_names[] = {"hello",    "spawn", "spawned", "refused", "started",
                                         "compiled", "exit",  "kill",    "signal",  "usage"};

#define TYPES    (sizeof types / sizeof types[0])
#define BAD_ROWS (sizeof bad_rows / sizeof bad_rows[0])

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello__largest_fits),
        cmocka_unit_test(test_hello__runtime_needs_name_version_and_file),
        cmocka_unit_test(test_decode__longer_than_any_message),
        cmocka_unit_test(test_type__of_too_little),
        cmocka_unit_test(test_seeds__are_messages),
    };
    static const struct {
        const char *name;
        CMUnitTestFunction fn;
    } each[] = {{"round_trip", test_round_trip},
                {"cut_at_every_byte", test_cut_at_every_byte},
                {"trailing_byte", test_trailing_byte},
                {"other_types", test_other_types}};
    static struct CMUnitTest table[TYPES * 4 + BAD_ROWS];
    static char names[TYPES * 4][48];
    size_t n = 0;
    for (size_t i = 0; i < TYPES; i++) {
        for (size_t k = 0; k < 4; k++, n++) {
            snprintf(names[n], sizeof names[n], "%s/%s", type_names[i], each[k].name);
            table[n] = (struct CMUnitTest){
                .name = names[n], .test_func = each[k].fn, .initial_state = (void *)&types[i]};
        }
    }
    for (size_t i = 0; i < BAD_ROWS; i++, n++) {
        table[n] = (struct CMUnitTest){.name = bad_rows[i].name,
                                       .test_func = test_field,
                                       .initial_state = (void *)&bad_rows[i]};
    }
    int failed = cmocka_run_group_tests_name("message", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("message rows", table, NULL, NULL);
}
