#include "tests/unit/service/job_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proto/wire/arena.h"

static const struct al_language language = {.name = "python", .version = "3.1"};
static struct al_backend nothing = {.name = "nothing", .version = "1"};

struct al_job *al_test_job_create(const struct al_test_job *from)
{
    struct al_arena *arena = al_arena_create(1u << 20);
    assert_non_null(arena);
    struct al_job_spec *spec = al_arena_alloc_array(arena, 1, sizeof *spec);
    assert_non_null(spec);
    spec->tenant_id = al_arena_strdup(arena, from->tenant ? from->tenant : "t");
    spec->user_id = "user";
    spec->language = &language;
    spec->workdir = "/sandbox";
    const char *code = al_arena_strdup(arena, from->code ? from->code : "");
    spec->code = (struct al_bytes){.data = (const uint8_t *)code, .len = strlen(code)};
    spec->quotas.wall_ms = from->wall_ms;
    static const struct al_env metadata[] = {{"a", "1"}, {"b", ""}};
    const struct al_job_params params = {
        .arena = arena,
        .spec = spec,
        .backend = from->backend ? from->backend : &nothing,
        .metadata = metadata,
        .n_metadata = 2,
        .executor = from->executor,
        .lane = from->lane,
        .run = from->run,
        .owner = from->owner,
        .ring_bytes = from->ring_bytes,
        .keep_bytes = from->keep_bytes,
        .deadline_ms = from->deadline_ms,
    };
    struct al_job *job;
    assert_int_equal(al_job_create(&params, &job, NULL), 0);
    return job;
}

void al_test_job_end(struct al_job *job, enum al_status status)
{
    struct al_result result;
    al_result_init(&result);
    result.status = status;
    al_job_end(job, &result);
    al_result_finish(&result);
    al_job_drop_output(job);
}
