#include "tests/unit/service/convert_support.h"

#include <stdlib.h>

const struct al_language test_languages[] = {
    {.name = "python", .version = "3.11.2", .aliases = {"py"}, .code_file = "main.py"},
    {.name = "typescript", .version = "5.0", .code_file = "main.ts", .output_file = "out/main.js"},
};

static const struct al_language echo_languages[] = {
    {.name = "python", .version = "0"},
};

static struct al_backend full = {.name = "full",
                                 .languages = test_languages,
                                 .n_languages = 2,
                                 .capabilities = TEST_ALL_CAPABILITIES,
                                 .available = true};
static struct al_backend bare = {
    .name = "bare", .languages = echo_languages, .n_languages = 1, .available = true};
static struct al_backend down = {.name = "down", .unavailable_reason = "the daemon is not running"};
static struct al_backend mute = {.name = "mute", .available = true};

static struct al_backend *const backends[] = {&full, &bare, &down, &mute};
const struct al_registry test_registry = {.backends = backends, .n = 4, .default_backend = &full};

void test_fill_strings(Airlock__V1__RunRequest *m)
{
    char **const strings[] = {&m->language,  &m->inputs_json, &m->workdir,
                              &m->tenant_id, &m->user_id,     &m->backend};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        *strings[i] = *strings[i] ? *strings[i] : (char *)"";
    }
}

int test_convert(const Airlock__V1__RunRequest *m, enum test_call call, const char *tenant,
                 const struct al_request_limits *limits, struct al_arena *arena,
                 struct al_request **ret, struct al_err *err)
{
    Airlock__V1__RunRequest *filled = al_arena_alloc(arena, sizeof *filled);
    if (!filled) {
        abort();
    }
    *filled = *m;
    test_fill_strings(filled);
    const struct al_convert_env env = {.registry = &test_registry,
                                       .limits = limits,
                                       .tenant_metadata = tenant,
                                       .stream = call != RUN,
                                       .terminal = {.rows = call == TERMINAL ? 24 : 0}};
    return al_convert_run(&env, filled, arena, ret, err);
}
