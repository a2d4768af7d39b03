#include "cache/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backends/api/backend.h"

#define BYTES(text)                               \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }
#define HEX_LEN (2 * AL_FINGERPRINT_LEN)

/* A spec with something in every field, and all that it points to. */
struct subject {
    struct al_job_spec spec;
    struct al_language language;
    struct al_file files[3];
    struct al_env env[3];
    const char *args[3];
    const char *hosts[3];
    const char *artifacts[3];
    const char *backend;
    const char *backend_version;
};

static void make(struct subject *s)
{
    *s = (struct subject){
        .language = {.name = "python", .version = "3.11.2"},
        .files = {{"a.txt", BYTES("one"), 0644},
                  {"b/c.txt", BYTES("two"), 0644},
                  {"d", BYTES(""), 0755}},
        .env = {{"A", "1"}, {"B", "2"}, {"C", ""}},
        .args = {"x", "y", "z"},
        .hosts = {"a.example", "b.example", "10.0.0.0/8"},
        .artifacts = {"*.txt", "out/**", "z"},
        .backend = "native",
        .backend_version = "1",
    };
    s->spec = (struct al_job_spec){
        .job_id = "0123456789abcdef",
        .tenant_id = "acme",
        .user_id = "ann",
        .language = &s->language,
        .code = BYTES("print(1)"),
        .files = s->files,
        .n_files = 3,
        .args = s->args,
        .n_args = 3,
        .env = s->env,
        .n_env = 3,
        .inputs_json = "{\"a\":1}",
        .workdir = "/sandbox",
        .stdin_bytes = BYTES("in"),
        .quotas = {5000, 10000, 256, 64, 32, 64, 64, 1 << 20, 1 << 20},
        .network = AL_NETWORK_ALLOWLIST,
        .hosts = s->hosts,
        .n_hosts = 3,
        .artifacts = s->artifacts,
        .n_artifacts = 3,
    };
}

static void make_minimal(struct subject *s)
{
    make(s);
    s->spec = (struct al_job_spec){
        .tenant_id = "_default",
        .user_id = "",
        .language = &s->language,
        .workdir = "/sandbox",
        .network = AL_NETWORK_NONE,
    };
    s->backend_version = "";
}

static void print(const struct subject *s, char ret[HEX_LEN + 1])
{
    uint8_t sum[AL_FINGERPRINT_LEN];
    assert_int_equal(al_fingerprint(&s->spec, s->backend, s->backend_version, sum), 0);
    for (size_t i = 0; i < sizeof sum; i++) {
        snprintf(ret + 2 * i, 3, "%02x", sum[i]);
    }
}

/* The sums were made by a second implementation of the encoding that fingerprint.h describes. */
static void test_golden__everything(void **state)
{
    (void)state;
    struct subject s;
    char hex[HEX_LEN + 1];
    make(&s);
    print(&s, hex);
    assert_string_equal(hex, "f573d32c556798256435068eda8868ccc3bf509f3b408b6b90350eb7abd676d7");
}

static void test_golden__minimal(void **state)
{
    (void)state;
    struct subject s;
    char hex[HEX_LEN + 1];
    make_minimal(&s);
    print(&s, hex);
    assert_string_equal(hex, "8cfb68cb9d9445ebbf6b86c40d04a621bc02197e652d45dad929a1b4ca8fcdd4");
}

struct row {
    const char *name;
    void (*change)(struct subject *s);
    bool same; /* the key stays */
};

#define CHANGE(name, code)              \
    static void name(struct subject *s) \
    {                                   \
        code;                           \
    }

#define SWAP(array, i, j)                          \
    do {                                           \
        __typeof__((array)[0]) swap_ = (array)[i]; \
        (array)[i] = (array)[j];                   \
        (array)[j] = swap_;                        \
    } while (0)

#define SWAP_PATHS(files, i, j)              \
    do {                                     \
        const char *path_ = (files)[i].path; \
        (files)[i].path = (files)[j].path;   \
        (files)[j].path = path_;             \
    } while (0)

CHANGE(backend, s->backend = "local")
CHANGE(backend_version, s->backend_version = "2")
CHANGE(backend_boundary, (s->backend = "nativ", s->backend_version = "e1"))
CHANGE(tenant, s->spec.tenant_id = "acma")
CHANGE(language, s->language.name = "pythom")
CHANGE(language_version, s->language.version = "3.11.3")
CHANGE(code, s->spec.code = (struct al_bytes)BYTES("print(2)"))
CHANGE(code_nul, s->spec.code = (struct al_bytes)BYTES("print(1)\0"))
CHANGE(args_value, s->args[1] = "Y")
CHANGE(args_order, SWAP(s->args, 0, 1))
CHANGE(args_fewer, s->spec.n_args = 2)
CHANGE(args_boundary, (s->args[0] = "xy", s->args[1] = ""))
CHANGE(stdin_bytes, s->spec.stdin_bytes = (struct al_bytes)BYTES("In"))
CHANGE(stdin_empty, s->spec.stdin_bytes = (struct al_bytes){0})
CHANGE(stdin_open, s->spec.stdin_open = true)
CHANGE(inputs, s->spec.inputs_json = "{\"a\":2}")
CHANGE(inputs_none, s->spec.inputs_json = NULL)
CHANGE(inputs_empty, s->spec.inputs_json = "")
CHANGE(file_path, s->files[0].path = "A.txt")
CHANGE(file_mode, s->files[0].mode = 0600)
CHANGE(file_content, s->files[0].content = (struct al_bytes)BYTES("One"))
CHANGE(file_swapped_content, SWAP(s->files, 0, 1); SWAP_PATHS(s->files, 0, 1))
CHANGE(file_fewer, s->spec.n_files = 2)
CHANGE(file_order, SWAP(s->files, 0, 2))
CHANGE(env_name, s->env[0].name = "AA")
CHANGE(env_value, s->env[0].value = "2")
CHANGE(env_fewer, s->spec.n_env = 2)
CHANGE(env_order, SWAP(s->env, 0, 2))
CHANGE(env_boundary, (s->env[0].name = "A1", s->env[0].value = ""))
CHANGE(workdir, s->spec.workdir = "/sandbox/x")
CHANGE(artifact_value, s->artifacts[0] = "*.csv")
CHANGE(artifact_fewer, s->spec.n_artifacts = 2)
CHANGE(artifact_order, SWAP(s->artifacts, 0, 2))
CHANGE(network, s->spec.network = AL_NETWORK_UNRESTRICTED)
CHANGE(host_value, s->hosts[0] = "c.example")
CHANGE(host_fewer, s->spec.n_hosts = 2)
CHANGE(host_order, SWAP(s->hosts, 0, 2))
CHANGE(cpu, s->spec.quotas.cpu_ms++)
CHANGE(memory, s->spec.quotas.memory_mb++)
CHANGE(pids, s->spec.quotas.pids++)
CHANGE(file_size, s->spec.quotas.file_size_mb++)
CHANGE(open_files, s->spec.quotas.open_files++)
CHANGE(disk, s->spec.quotas.disk_mb++)
CHANGE(wall, s->spec.quotas.wall_ms++)
CHANGE(output_bytes, s->spec.quotas.output_bytes++)
CHANGE(artifact_bytes, s->spec.quotas.artifact_bytes++)
CHANGE(job_id, s->spec.job_id[0] = 'f')
CHANGE(user_id, s->spec.user_id = "bob")
CHANGE(language_alias, s->language.aliases[0] = "py")

#define OTHER(change)          \
    {                          \
#change, change, false \
    }
#define SAME(change)          \
    {                         \
#change, change, true \
    }

static const struct row rows[] = {
    OTHER(backend),
    OTHER(backend_version),
    OTHER(backend_boundary),
    OTHER(tenant),
    OTHER(language),
    OTHER(language_version),
    OTHER(code),
    OTHER(code_nul),
    OTHER(args_value),
    OTHER(args_order),
    OTHER(args_fewer),
    OTHER(args_boundary),
    OTHER(stdin_bytes),
    OTHER(stdin_empty),
    OTHER(stdin_open),
    OTHER(inputs),
    OTHER(inputs_none),
    OTHER(inputs_empty),
    OTHER(file_path),
    OTHER(file_mode),
    OTHER(file_content),
    OTHER(file_swapped_content),
    OTHER(file_fewer),
    SAME(file_order),
    OTHER(env_name),
    OTHER(env_value),
    OTHER(env_fewer),
    SAME(env_order),
    OTHER(env_boundary),
    OTHER(workdir),
    OTHER(artifact_value),
    OTHER(artifact_fewer),
    SAME(artifact_order),
    OTHER(network),
    OTHER(host_value),
    OTHER(host_fewer),
    SAME(host_order),
    OTHER(cpu),
    OTHER(memory),
    OTHER(pids),
    OTHER(file_size),
    OTHER(open_files),
    OTHER(disk),
    SAME(wall),
    SAME(output_bytes),
    SAME(artifact_bytes),
    SAME(job_id),
    SAME(user_id),
    SAME(language_alias),
};
#define ROWS (sizeof rows / sizeof rows[0])

static void test_change_alone(void **state)
{
    const struct row *row = *state;
    struct subject s;
    char before[HEX_LEN + 1];
    char after[HEX_LEN + 1];
    make(&s);
    print(&s, before);
    row->change(&s);
    print(&s, after);
    assert_int_equal(strcmp(before, after) == 0, row->same);
}

/* No two changes end in the same key either. */
static void test_changes__all_differ(void **state)
{
    (void)state;
    static char keys[ROWS][HEX_LEN + 1];
    for (size_t i = 0; i < ROWS; i++) {
        struct subject s;
        make(&s);
        rows[i].change(&s);
        print(&s, keys[i]);
        for (size_t j = 0; j < i; j++) {
            assert_true(rows[i].same || rows[j].same || strcmp(keys[i], keys[j]) != 0);
        }
    }
}

int main(void)
{
    static struct CMUnitTest tests[ROWS + 3] = {
        cmocka_unit_test(test_golden__everything),
        cmocka_unit_test(test_golden__minimal),
        cmocka_unit_test(test_changes__all_differ),
    };
    for (size_t i = 0; i < ROWS; i++) {
        tests[3 + i] =
            (struct CMUnitTest){rows[i].name, test_change_alone, NULL, NULL, (void *)&rows[i]};
    }
    return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
