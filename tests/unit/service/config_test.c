#include "service/config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/io.h"

#define EXAMPLE "service/airlockd.example.conf"

/* Each key with a value that is not its default, for what must be overwritten. */
static const char everything_else[] = "[server]\n"
                                      "listen = [::1]:1\n"
                                      "  unix:/x\n"
                                      "listen = localhost:0\n"
                                      "data_dir = /x\n"
                                      "user = x\n"
                                      "launcher = /x\n"
                                      "default_backend = x\n"
                                      "run_slots = 1\n"
                                      "stream_slots = 2\n"
                                      "queue_max = 3\n"
                                      "queue_tenant_max = 4\n"
                                      "ring_kb = 65\n"
                                      "stream_keep_kb = 66\n"
                                      "linger_max_seconds = 7.25\n"
                                      "output_memory_mb = 17\n"
                                      "job_history = 5\n"
                                      "drain_seconds = 6.5\n"
                                      "[limits]\n"
                                      "code_kb = 1\n"
                                      "files_mb = 2\n"
                                      "files = 3\n"
                                      "stdin_kb = 4\n"
                                      "inputs_kb = 5\n"
                                      "metadata_kb = 6\n"
                                      "env_kb = 7\n"
                                      "args = 8\n"
                                      "args_kb = 9\n"
                                      "deadline_margin_ms = 10\n"
                                      "[defaults]\n"
                                      "cpu_seconds = 0.001\n"
                                      "wall_seconds = 0.25\n"
                                      "memory_mb = 3\n"
                                      "pids = 4\n"
                                      "file_size_mb = 5\n"
                                      "open_files = 8\n"
                                      "disk_mb = 7\n"
                                      "output_kb = 8\n"
                                      "artifact_kb = 9\n"
                                      "[maxima]\n"
                                      "cpu_seconds = 604800\n"
                                      "wall_seconds = 12.3456\n"
                                      "memory_mb = 1048576\n"
                                      "pids = 65536\n"
                                      "file_size_mb = 15\n"
                                      "open_files = 16\n"
                                      "disk_mb = 17\n"
                                      "output_kb = 18\n"
                                      "artifact_kb = 19\n"
                                      "[quota]\n"
                                      "cpu_seconds_per_minute = 20.5\n"
                                      "max_inflight = 21\n"
                                      "tenants_max = 22\n"
                                      "[gate]\n"
                                      "mode = warn\n"
                                      "allow_warn = yes\n"
                                      "[cache]\n"
                                      "max_mb = 23\n"
                                      "entry_max_kb = 24\n"
                                      "max_age_seconds = 25.5\n"
                                      "[records]\n"
                                      "max_count = 26\n"
                                      "max_mb = 27\n"
                                      "max_age_days = 0.125\n";

static void write_bytes(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(al_io_write_full(fd, text, len), 0);
    close(fd);
}

/* In the test's own folder, under a short name. */
static const char *conf_path(void)
{
    const char *folder = getenv("TEST_TMPDIR");
    assert_int_equal(chdir(folder ? folder : "/tmp"), 0);
    return "test.conf";
}

static int read_bytes(struct al_config *config, const char *text, size_t len, struct al_err *err)
{
    const char *path = conf_path();
    write_bytes(path, text, len);
    int r = al_config_read(config, path, err);
    unlink(path);
    return r;
}

static int read_text(struct al_config *config, const char *text, struct al_err *err)
{
    return read_bytes(config, text, strlen(text), err);
}

static void assert_quotas_equal(const struct al_quotas *a, const struct al_quotas *b)
{
    assert_int_equal(a->cpu_ms, b->cpu_ms);
    assert_int_equal(a->wall_ms, b->wall_ms);
    assert_int_equal(a->memory_mb, b->memory_mb);
    assert_int_equal(a->pids, b->pids);
    assert_int_equal(a->file_size_mb, b->file_size_mb);
    assert_int_equal(a->open_files, b->open_files);
    assert_int_equal(a->disk_mb, b->disk_mb);
    assert_int_equal(a->output_bytes, b->output_bytes);
    assert_int_equal(a->artifact_bytes, b->artifact_bytes);
}

static void assert_limits_equal(const struct al_request_limits *a,
                                const struct al_request_limits *b)
{
    assert_int_equal(a->code_bytes, b->code_bytes);
    assert_int_equal(a->files_bytes, b->files_bytes);
    assert_int_equal(a->files, b->files);
    assert_int_equal(a->stdin_bytes, b->stdin_bytes);
    assert_int_equal(a->inputs_bytes, b->inputs_bytes);
    assert_int_equal(a->metadata_bytes, b->metadata_bytes);
    assert_int_equal(a->env_bytes, b->env_bytes);
    assert_int_equal(a->args, b->args);
    assert_int_equal(a->args_bytes, b->args_bytes);
    assert_int_equal(a->deadline_margin_ms, b->deadline_margin_ms);
    assert_quotas_equal(&a->defaults, &b->defaults);
    assert_quotas_equal(&a->maxima, &b->maxima);
}

static void assert_config_equal(const struct al_config *a, const struct al_config *b)
{
    assert_int_equal(a->n_listen, b->n_listen);
    for (size_t i = 0; i < a->n_listen; i++) {
        assert_string_equal(a->listen[i], b->listen[i]);
    }
    assert_string_equal(a->data_dir, b->data_dir);
    assert_string_equal(a->user, b->user);
    assert_string_equal(a->launcher, b->launcher);
    assert_string_equal(a->default_backend, b->default_backend);
    assert_int_equal(a->run_slots, b->run_slots);
    assert_int_equal(a->stream_slots, b->stream_slots);
    assert_int_equal(a->queue_max, b->queue_max);
    assert_int_equal(a->queue_tenant_max, b->queue_tenant_max);
    assert_int_equal(a->ring_bytes, b->ring_bytes);
    assert_int_equal(a->output_memory_mb, b->output_memory_mb);
    assert_int_equal(a->job_history, b->job_history);
    assert_int_equal(a->drain_ms, b->drain_ms);
    assert_limits_equal(&a->limits, &b->limits);
    assert_int_equal(a->quota.cpu_ms_per_minute, b->quota.cpu_ms_per_minute);
    assert_int_equal(a->quota.max_inflight, b->quota.max_inflight);
    assert_int_equal(a->tenants_max, b->tenants_max);
    assert_int_equal(a->gate_mode, b->gate_mode);
    assert_int_equal(a->gate_warn_allowed, b->gate_warn_allowed);
    assert_int_equal(a->cache_max_mb, b->cache_max_mb);
    assert_int_equal(a->cache_entry_max_kb, b->cache_entry_max_kb);
    assert_int_equal(a->cache_max_age_ms, b->cache_max_age_ms);
    assert_int_equal(a->records_max_count, b->records_max_count);
    assert_int_equal(a->records_max_mb, b->records_max_mb);
    assert_int_equal(a->records_max_age_ms, b->records_max_age_ms);
    assert_int_equal(a->n_tenants, b->n_tenants);
}

static void test_config_defaults__are_the_documented_ones(void **state)
{
    (void)state;
    struct al_config c;
    al_config_defaults(&c);
    const struct al_quotas defaults = {5000, 10000, 256, 64, 32, 64, 64, 1 << 20, 1 << 20};
    const struct al_quotas maxima = {300000, 3600000, 4096,     1024,    4096,
                                     1024,   4096,    16 << 20, 16 << 20};
    assert_quotas_equal(&c.limits.defaults, &defaults);
    assert_quotas_equal(&c.limits.maxima, &maxima);
    assert_string_equal(c.listen[0], "127.0.0.1:50051");
    assert_int_equal(c.limits.code_bytes, 1048576);
    assert_int_equal(c.limits.files_bytes, 16777216);
    assert_int_equal(c.limits.files, 256);
    assert_int_equal(c.limits.stdin_bytes, 4194304);
    assert_int_equal(c.limits.inputs_bytes, 1048576);
    assert_int_equal(c.limits.metadata_bytes, 65536);
    assert_int_equal(c.limits.env_bytes, 65536);
    assert_int_equal(c.limits.args, 256);
    assert_int_equal(c.quota.cpu_ms_per_minute, 600000);
    assert_int_equal(c.quota.max_inflight, 8);
    assert_int_equal(c.tenants_max, 65536);
    assert_int_equal(c.gate_mode, AL_GATE_ENFORCE);
    assert_false(c.gate_warn_allowed);
    assert_int_equal(c.cache_max_mb, 256);
    assert_int_equal(c.cache_entry_max_kb, 4096);
    assert_int_equal(c.cache_max_age_ms, 86400000);
    assert_int_equal(c.records_max_count, 100000);
    assert_int_equal(c.records_max_mb, 512);
    assert_int_equal(c.records_max_age_ms, 604800000);
    assert_int_equal(c.n_tenants, 0);
}

static void test_config_read__takes_every_key(void **state)
{
    (void)state;
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    assert_int_equal(read_text(&c, everything_else, &err), 0);
    assert_int_equal(c.n_listen, 3);
    assert_string_equal(c.listen[0], "[::1]:1");
    assert_string_equal(c.listen[1], "unix:/x");
    assert_string_equal(c.listen[2], "localhost:0");
    assert_string_equal(c.launcher, "/x");
    assert_int_equal(c.drain_ms, 6500);
    assert_int_equal(c.ring_bytes, 65 << 10);
    assert_int_equal(c.limits.files_bytes, 2 << 20);
    const struct al_quotas defaults = {1, 250, 3, 4, 5, 8, 7, 8 << 10, 9 << 10};
    const struct al_quotas maxima = {604800000, 12345, 1048576,  65536,   15,
                                     16,        17,    18 << 10, 19 << 10};
    assert_quotas_equal(&c.limits.defaults, &defaults);
    assert_quotas_equal(&c.limits.maxima, &maxima);
    assert_int_equal(c.quota.cpu_ms_per_minute, 20500);
    assert_int_equal(c.quota.max_inflight, 21);
    assert_int_equal(c.tenants_max, 22);
    assert_int_equal(c.gate_mode, AL_GATE_WARN);
    assert_true(c.gate_warn_allowed);
    assert_int_equal(c.cache_max_mb, 23);
    assert_int_equal(c.cache_entry_max_kb, 24);
    assert_int_equal(c.cache_max_age_ms, 25500);
    assert_int_equal(c.records_max_count, 26);
    assert_int_equal(c.records_max_mb, 27);
    assert_int_equal(c.records_max_age_ms, 10800000);
}

static void assert_quota_is(struct al_quota *quota, const char *tenant, double cpu_seconds,
                            uint32_t max_inflight)
{
    struct al_quota_remaining left;
    al_quota_get(quota, tenant, 0, &left);
    assert_float_equal(left.cpu_seconds_per_minute, cpu_seconds, 0);
    assert_int_equal(left.max_inflight, max_inflight);
}

static void test_config_read__takes_quotas_of_tenants(void **state)
{
    (void)state;
    static const char text[] = "[tenant a.B-9]\n"
                               "max_inflight = 3\n"
                               "[tenant unchanged]\n"
                               "[tenant b]\n"
                               "cpu_seconds_per_minute = 7.5\n"
                               "[quota]\n"
                               "cpu_seconds_per_minute = 100\n"
                               "max_inflight = 5\n"
                               "[tenant a.B-9]\n"
                               "cpu_seconds_per_minute = 1000\n";
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    assert_int_equal(read_text(&c, text, &err), 0);
    assert_int_equal(c.n_tenants, 3);
    struct al_quota *quota = al_config_quota_create(&c);
    assert_non_null(quota);
    assert_quota_is(quota, "a.B-9", 1000, 3);
    assert_quota_is(quota, "b", 7.5, 5);
    assert_quota_is(quota, "unchanged", 100, 5);
    assert_quota_is(quota, "other", 100, 5);
    al_quota_destroy(quota);
}

static void test_config_read__refuses_too_many_tenants(void **state)
{
    (void)state;
    static char text[(AL_CONFIG_TENANTS_MAX + 1) * 16];
    size_t len = 0;
    for (int i = 0; i <= AL_CONFIG_TENANTS_MAX; i++) {
        len += (size_t)snprintf(text + len, sizeof text - len, "[tenant %d]\n", i);
    }
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    assert_true(read_text(&c, text, &err) < 0);
    assert_string_equal(err.text, "test.conf:1025: more than 1024 tenants");
}

static char example_path[4096];

static void test_config_read__example_sets_every_default(void **state)
{
    (void)state;
    struct al_config c;
    struct al_config defaults;
    struct al_err err = {0};
    al_config_defaults(&c);
    al_config_defaults(&defaults);
    assert_int_equal(read_text(&c, everything_else, &err), 0);
    if (al_config_read(&c, example_path, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_config_equal(&c, &defaults);
}

static void test_config_read__names_a_missing_file(void **state)
{
    (void)state;
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    assert_true(al_config_read(&c, "/nonexistent/a.conf", &err) < 0);
    assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.text, "/nonexistent/a.conf: No such file or directory");
}

static void test_config_read__refuses_nul(void **state)
{
    (void)state;
    static const char text[] = "[server]\nuser = a\0b\n";
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    assert_true(read_bytes(&c, text, sizeof text - 1, &err) < 0);
    assert_string_equal(err.text, "test.conf:2: a NUL byte");
}

static void test_config_read__refuses_a_huge_file(void **state)
{
    (void)state;
    size_t len = 300 << 10;
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, '\n', len);
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    assert_true(read_bytes(&c, text, len, &err) < 0);
    assert_string_equal(err.text, "test.conf: File too large");
    free(text);
}

struct row {
    const char *name;
    const char *text;
    const char *error; /* after "test.conf"; NULL: accepted */
};

#define X10(s) s s s s s s s s s s
#define CHARS190      \
    X10("xxxxxxxxxx") \
    X10("xxxxxxxx")   \
    "xxxxxxxxxx"

static const struct row rows[] = {
    {"an empty file", "", NULL},
    {"no newline at the end", "[server]\nqueue_max = 7", NULL},
    {"CRLF", "[server]\r\nqueue_max = 7\r\n\r\n", NULL},
    {"BOM", "\xef\xbb\xbf[server]\nqueue_max = 7\n", NULL},
    {"comments", "# a\n; b\n[server]\nqueue_max = 7 ; c\n  # d\n", NULL},
    {"colon instead of equals", "[server]\nqueue_max: 7\n", NULL},
    {"the launcher's sections",
     "[cells]\nany = thing\n[local]\nallow_unsafe = yes\n"
     "[bubblewrap]\nprogram = x\n[firejail]\nprogram = x\n[runtime go]\nargv = a\n  b\nargv = c\n",
     NULL},
    {"a line of the greatest length", "[cells]\nx = " CHARS190 "1234\n", NULL},
    {"a line one byte too long", "[cells]\nx = " CHARS190 "12345\n",
     ":2: the line is longer than 198 bytes"},
    {"a long comment", "#" CHARS190 CHARS190 "\n", ":1: the line is longer than 198 bytes"},
    {"a section's name of the greatest length", "[runtime " X10("abcd") "x]\na = b\n", NULL},
    {"a section's name one byte too long", "\n[runtime " X10("abcd") "xy]\na = b\n",
     ":2: the section's name is longer than 49 bytes"},
    {"unknown section", "[sever]\n", ":1: unknown section [sever]"},
    {"runtime without a name", "[runtime ]\n", ":1: unknown section [runtime ]"},
    {"unknown key", "[server]\n\nrunslots = 5\n", ":3: [server] unknown key \"runslots\""},
    {"key of another section", "[limits]\nrun_slots = 5\n",
     ":2: [limits] unknown key \"run_slots\""},
    {"key before any section", "run_slots = 5\n", ":1: [] unknown key \"run_slots\""},
    {"key in an indented section", "[server]\n\n  [x]\nrun_slots = 5\n",
     ":4: [x] unknown key \"run_slots\""},
    {"no value", "[server]\nrun_slots\n", ":2: neither [section] nor key = value"},
    {"unclosed section", "[server\n", ":1: neither [section] nor key = value"},
    {"a key twice", "[server]\nrun_slots = 5\nrun_slots = 5\n",
     ":3: [server] run_slots: given twice (an indented line continues the key above it)"},
    {"a key twice in two sections", "[server]\nrun_slots = 5\n[limits]\n[server]\nrun_slots = 5\n",
     ":5: [server] run_slots: given twice (an indented line continues the key above it)"},
    {"an indented key", "[server]\nqueue_max = 7\n  run_slots = 5\n",
     ":3: [server] queue_max: given twice (an indented line continues the key above it)"},
    {"not a number", "[server]\nrun_slots = many\n",
     ":2: [server] run_slots: \"many\" is not a whole number (0 to 4096)"},
    {"empty number", "[server]\nrun_slots =\n",
     ":2: [server] run_slots: \"\" is not a whole number (0 to 4096)"},
    {"negative number", "[server]\nrun_slots = -1\n",
     ":2: [server] run_slots: \"-1\" is not a whole number (0 to 4096)"},
    {"hexadecimal number", "[server]\nrun_slots = 0x10\n",
     ":2: [server] run_slots: \"0x10\" is not a whole number (0 to 4096)"},
    {"number at its maximum", "[server]\nrun_slots = 4096\n", NULL},
    {"number above its maximum", "[server]\nrun_slots = 4097\n",
     ":2: [server] run_slots: 4097 is out of range (0 to 4096)"},
    {"number at its minimum", "[server]\nstream_slots = 1\n", NULL},
    {"number below its minimum", "[server]\nstream_slots = 0\n",
     ":2: [server] stream_slots: 0 is out of range (1 to 65536)"},
    {"number beyond 64 bits", "[server]\nrun_slots = 99999999999999999999999999\n",
     ":2: [server] run_slots: 99999999999999999999 is out of range (0 to 4096)"},
    {"seconds as text", "[defaults]\ncpu_seconds = 5s\n",
     ":2: [defaults] cpu_seconds: \"5s\" is not a number of seconds (0.001 to 604800)"},
    {"seconds nan", "[defaults]\ncpu_seconds = nan\n",
     ":2: [defaults] cpu_seconds: \"nan\" is not a number of seconds (0.001 to 604800)"},
    {"seconds with an exponent", "[defaults]\ncpu_seconds = 1e2\n",
     ":2: [defaults] cpu_seconds: \"1e2\" is not a number of seconds (0.001 to 604800)"},
    {"seconds with a bare point", "[defaults]\ncpu_seconds = 1.\n",
     ":2: [defaults] cpu_seconds: \"1.\" is not a number of seconds (0.001 to 604800)"},
    {"seconds zero", "[defaults]\ncpu_seconds = 0\n",
     ":2: [defaults] cpu_seconds: 0 is out of range (0.001 to 604800)"},
    {"seconds too many", "[defaults]\ncpu_seconds = 604800.001\n",
     ":2: [defaults] cpu_seconds: 604800.001 is out of range (0.001 to 604800)"},
    {"seconds beyond 64 bits", "[defaults]\ncpu_seconds = 99999999999999999999\n",
     ":2: [defaults] cpu_seconds: 99999999999999999999 is out of range (0.001 to 604800)"},
    {"drain of no time", "[server]\ndrain_seconds = 0\n", NULL},
    {"default above maximum", "[defaults]\npids = 65\n[maxima]\npids = 64\n",
     ": [defaults] pids is above that of [maxima]"},
    {"default at maximum", "[defaults]\npids = 64\n[maxima]\npids = 64\n", NULL},
    {"ring above all memory", "[server]\nring_kb = 32768\noutput_memory_mb = 16\n",
     ": [server] ring_kb is above output_memory_mb"},
    {"quota of no jobs", "[quota]\nmax_inflight = 0\n",
     ":2: [quota] max_inflight: 0 is out of range (1 to 65536)"},
    {"quota of no CPU time", "[tenant a]\ncpu_seconds_per_minute = 0\n",
     ":2: [tenant a] cpu_seconds_per_minute: 0 is out of range (0.001 to 604800)"},
    {"too many tenants at a time", "[quota]\ntenants_max = 1048577\n",
     ":2: [quota] tenants_max: 1048577 is out of range (1 to 1048576)"},
    {"quota below what a job gets", "[quota]\ncpu_seconds_per_minute = 4.999\n",
     ": [quota] cpu_seconds_per_minute is below [defaults] cpu_seconds"},
    {"quota of just that", "[quota]\ncpu_seconds_per_minute = 5\n", NULL},
    {"tenant's quota below what a job gets", "[tenant a]\ncpu_seconds_per_minute = 4.999\n",
     ": [tenant a] cpu_seconds_per_minute is below [defaults] cpu_seconds"},
    {"tenant's unknown key", "[tenant a]\ntenants_max = 5\n",
     ":2: [tenant a] unknown key \"tenants_max\""},
    {"tenant's key twice",
     "[tenant a]\nmax_inflight = 5\n[tenant b]\nmax_inflight = 5\n"
     "[tenant a]\nmax_inflight = 5\n",
     ":6: [tenant a] max_inflight: given twice (an indented line continues the key above it)"},
    {"tenant without a name", "[tenant ]\n",
     ":1: \"\" is not a tenant's name (here 1 to 42 of A-Za-z0-9._-)"},
    {"tenant without a name or a space", "[tenant]\n", ":1: unknown section [tenant]"},
    {"tenant of two words", "[tenant a b]\n",
     ":1: \"a b\" is not a tenant's name (here 1 to 42 of A-Za-z0-9._-)"},
    {"tenant of two words in an indented section", "[server]\n\n  [tenant a b]\nmax_inflight = 5\n",
     ":4: \"a b\" is not a tenant's name (here 1 to 42 of A-Za-z0-9._-)"},
    {"tenant with the longest name", "[tenant " X10("abcd") "xx]\nmax_inflight = 5\n", NULL},
    {"tenant with a name too long", "[tenant " X10("abcd") "xxx]\nmax_inflight = 5\n",
     ":1: the section's name is longer than 49 bytes"},
    {"gate off", "[gate]\nmode = off\n", NULL},
    {"gate of another mode", "[gate]\nmode = Warn\n",
     ":2: [gate] mode: \"Warn\" is none of enforce, warn, off"},
    {"gate without a mode", "[gate]\nmode =\n",
     ":2: [gate] mode: \"\" is none of enforce, warn, off"},
    {"neither yes nor no", "[gate]\nallow_warn = true\n",
     ":2: [gate] allow_warn: \"true\" is neither yes nor no"},
    {"no cache", "[cache]\nmax_mb = 0\n", NULL},
    {"largest cache", "[cache]\nmax_mb = 1048576\nentry_max_kb = 16384\n", NULL},
    {"cache too large", "[cache]\nmax_mb = 1048577\n",
     ":2: [cache] max_mb: 1048577 is out of range (0 to 1048576)"},
    {"cache entry of nothing", "[cache]\nentry_max_kb = 0\n",
     ":2: [cache] entry_max_kb: 0 is out of range (1 to 16384)"},
    {"cache entry too large", "[cache]\nentry_max_kb = 16385\n",
     ":2: [cache] entry_max_kb: 16385 is out of range (1 to 16384)"},
    {"cache of the shortest age", "[cache]\nmax_age_seconds = 1\n", NULL},
    {"cache of too short an age", "[cache]\nmax_age_seconds = 0.999\n",
     ":2: [cache] max_age_seconds: 0.999 is out of range (1 to 315360000)"},
    {"cache of the longest age", "[cache]\nmax_age_seconds = 315360000\n", NULL},
    {"cache of too long an age", "[cache]\nmax_age_seconds = 315360000.001\n",
     ":2: [cache] max_age_seconds: 315360000.001 is out of range (1 to 315360000)"},
    {"no records", "[records]\nmax_count = 0\n",
     ":2: [records] max_count: 0 is out of range (1 to 100000000)"},
    {"too many records", "[records]\nmax_count = 100000001\n",
     ":2: [records] max_count: 100000001 is out of range (1 to 100000000)"},
    {"too little room for records", "[records]\nmax_mb = 15\n",
     ":2: [records] max_mb: 15 is out of range (16 to 1048576)"},
    {"days as text", "[records]\nmax_age_days = 7d\n",
     ":2: [records] max_age_days: \"7d\" is not a number of days (0.01 to 3650)"},
    {"fewest days", "[records]\nmax_age_days = 0.01\n", NULL},
    {"too few days", "[records]\nmax_age_days = 0.009\n",
     ":2: [records] max_age_days: 0.009 is out of range (0.01 to 3650)"},
    {"most days", "[records]\nmax_age_days = 3650\n", NULL},
    {"too many days", "[records]\nmax_age_days = 3650.001\n",
     ":2: [records] max_age_days: 3650.001 is out of range (0.01 to 3650)"},
    {"relative path", "[server]\ndata_dir = data\n",
     ":2: [server] data_dir: \"data\" is not an absolute path"},
    {"empty path", "[server]\ndata_dir =\n", ":2: [server] data_dir: \"\" is not an absolute path"},
    {"empty optional path", "[server]\nlauncher =\n", NULL},
    {"relative optional path", "[server]\nlauncher = x\n",
     ":2: [server] launcher: \"x\" is not an absolute path (nor empty)"},
    {"path with a semicolon", "[server]\ndata_dir = /a;b\n", NULL},
    {"empty name", "[server]\nuser =\n",
     ":2: [server] user: \"\" is not a name (1 to 64 of A-Za-z0-9._-)"},
    {"name with a space", "[server]\nuser = a b\n",
     ":2: [server] user: \"a b\" is not a name (1 to 64 of A-Za-z0-9._-)"},
    {"unprintable name", "[server]\nuser = \x01\xff\n",
     ":2: [server] user: \"\\x01\\xff\" is not a name (1 to 64 of A-Za-z0-9._-)"},
#define BAD_ADDRESS                                                                      \
    " is not an address (HOST:PORT with port 0 to 65535, or unix:PATH with at most 107 " \
    "bytes of path)"
    {"address without a port", "[server]\nlisten = localhost\n",
     ":2: [server] listen: \"localhost\"" BAD_ADDRESS},
    {"address without a host", "[server]\nlisten = :1\n",
     ":2: [server] listen: \":1\"" BAD_ADDRESS},
    {"address with a port too high", "[server]\nlisten = a:65536\n",
     ":2: [server] listen: \"a:65536\"" BAD_ADDRESS},
    {"address with the highest port", "[server]\nlisten = a:65535\n", NULL},
    {"address without a path", "[server]\nlisten = unix:\n",
     ":2: [server] listen: \"unix:\"" BAD_ADDRESS},
    {"address with the longest path", "[server]\nlisten = unix:" X10("xxxxxxxxxx") "xxxxxxx\n",
     NULL},
    {"address with a path too long", "[server]\nlisten = unix:" X10("xxxxxxxxxx") "xxxxxxxx\n",
     ":2: [server] listen: \"unix:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "...\"" BAD_ADDRESS},
    {"a comment behind an indented address", "[server]\nlisten = a:1\n  b:2 ; c\n",
     ":3: [server] listen: \"b:2 ; c\"" BAD_ADDRESS},
    {"too many addresses",
     "[server]\nlisten = a:1\n a:2\n a:3\n a:4\n a:5\n a:6\n a:7\n a:8\n a:9\n",
     ":10: [server] listen: more than 8 addresses"},
};

static void test_config_read__row(void **state)
{
    const struct row *row = *state;
    struct al_config c;
    struct al_err err = {0};
    al_config_defaults(&c);
    int r = read_text(&c, row->text, &err);
    if (!row->error) {
        if (r < 0) {
            fail_msg("%s", err.text);
        }
        return;
    }
    assert_true(r < 0);
    assert_int_equal(err.code, AL_ERR_INVALID_ARGUMENT);
    assert_int_equal(strncmp(err.text, "test.conf", 9), 0);
    assert_string_equal(err.text + 9, row->error);
}

#define N_ROWS (sizeof rows / sizeof rows[0])

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(test_config_defaults__are_the_documented_ones),
        cmocka_unit_test(test_config_read__takes_every_key),
        cmocka_unit_test(test_config_read__takes_quotas_of_tenants),
        cmocka_unit_test(test_config_read__refuses_too_many_tenants),
        cmocka_unit_test(test_config_read__example_sets_every_default),
        cmocka_unit_test(test_config_read__names_a_missing_file),
        cmocka_unit_test(test_config_read__refuses_nul),
        cmocka_unit_test(test_config_read__refuses_a_huge_file),
    };
    static struct CMUnitTest table[N_ROWS];
    if (!realpath(EXAMPLE, example_path)) {
        perror(EXAMPLE);
        return 1;
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        table[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = test_config_read__row,
                                       .initial_state = (void *)&rows[i]};
    }
    int failed = cmocka_run_group_tests_name("config", single, NULL, NULL);
    return failed + cmocka_run_group_tests_name("config_read", table, NULL, NULL);
}
