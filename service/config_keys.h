/*
 * The keys of the configuration file: one table row each, and the conversion of a value by its row.
 */
#pragma once

#include "service/config.h"

struct al_config_key;

/* NULL: there is no such key in that section. */
const struct al_config_key *al_config_key_find(const char *section, const char *name);

/* Which key it is, 0 to AL_CONFIG_KEYS_MAX - 1. */
size_t al_config_key_index(const struct al_config_key *key);
#define AL_CONFIG_KEYS_MAX 64

/* May stand in the file several times; its values add up. */
bool al_config_key_repeats(const struct al_config_key *key);

/* What names consist of. */
#define AL_CONFIG_NAME_CHARS                               \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" \
    "0123456789._-"

/* How the section of a tenant begins; for al_config_key_find it stands for each of them. */
#define AL_CONFIG_TENANT_PREFIX "tenant "

/* The tenant's name in a section's; NULL: it is no tenant's section. */
const char *al_config_section_tenant(const char *section);

/* The tenant's place, made if need be. NULL when it is no name, or one too many. */
struct al_config_tenant *al_config_tenant_open(struct al_config *config, const char *name,
                                               struct al_err *err);

/* Whether the quotas fit to the rest. */
int al_config_quota_check(const struct al_config *config, const char *path, struct al_err *err);

/* Whether airlockd reads something from the section, or the launcher does. */
bool al_config_section_is_ours(const char *section);
bool al_config_section_is_launchers(const char *section);

/* Converts the text and stores it in a struct al_config, or in a struct al_config_tenant if the key
 * is one of a tenant's. On failure `err` says what is wrong with the value and what is allowed,
 * without naming the key. */
int al_config_key_set(const struct al_config_key *key, void *to, const char *text,
                      struct al_err *err);
