/*
 * What the tests of convert share: a registry of backends that run nothing, and macros that write a
 * RunRequest as one initialiser. Strings that an initialiser leaves out are NULL; test_convert sets
 * them to "", as unpacking does.
 */
#pragma once

#include "service/convert.h"

/* Long texts within a row. */
#define X10(s)  s s s s s s s s s s
#define X50(s)  X10(s) X10(s) X10(s) X10(s) X10(s)
#define X100(s) X50(s) X50(s)
#define X250(s) X100(s) X100(s) X50(s)

/* Members of a RunRequest within a row. */
typedef Airlock__V1__SandboxFile *file_ptr;
typedef Airlock__V1__RunRequest__EnvEntry *env_ptr;
typedef Airlock__V1__RunRequest__MetadataEntry *metadata_ptr;
typedef char *string_ptr;

/* clang-format off */
#define MEMBERS(name, type, ...) \
    .n_##name = sizeof((type[]){__VA_ARGS__}) / sizeof(type), .name = (type[]){__VA_ARGS__}
#define FILES(...)     MEMBERS(files, file_ptr, __VA_ARGS__)
#define ENV(...)       MEMBERS(env, env_ptr, __VA_ARGS__)
#define METADATA(...)  MEMBERS(metadata, metadata_ptr, __VA_ARGS__)
#define ARGS(...)      MEMBERS(args, string_ptr, __VA_ARGS__)
#define ARTIFACTS(...) MEMBERS(artifacts, string_ptr, __VA_ARGS__)
#define HOSTS(...)     MEMBERS(hosts, string_ptr, __VA_ARGS__)
#define QUOTAS(...)    (&(Airlock__V1__Quotas){__VA_ARGS__})
#define EGRESS(...)    (&(Airlock__V1__EgressAllowlist){__VA_ARGS__})
#define BYTES(s)       {.data = (uint8_t *)(s), .len = sizeof(s) - 1}

/* An element of FILES, ENV, METADATA. */
#define F(...)         (&(Airlock__V1__SandboxFile){.path = __VA_ARGS__})
#define E(k, v)        (&(Airlock__V1__RunRequest__EnvEntry){.key = (k), .value = (v)})
#define M(k, v)        (&(Airlock__V1__RunRequest__MetadataEntry){.key = (k), .value = (v)})
/* clang-format on */

enum test_call {
    RUN,
    STREAM,
    TERMINAL,
};

/* "full" (the default; python 3.11.2, typescript 5.0, every capability), "bare" (python, no
 * capability), "down" (not available), "mute" (no language). */
extern const struct al_registry test_registry;
extern const struct al_language test_languages[];
#define TEST_ALL_CAPABILITIES ((1u << AL_CAP_COUNT) - 1)

void test_fill_strings(Airlock__V1__RunRequest *m);

/* al_convert_run with the registry above. */
int test_convert(const Airlock__V1__RunRequest *m, enum test_call call, const char *tenant,
                 const struct al_request_limits *limits, struct al_arena *arena,
                 struct al_request **ret, struct al_err *err);
