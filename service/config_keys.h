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

/* Whether airlockd reads something from the section, or the launcher does. */
bool al_config_section_is_ours(const char *section);
bool al_config_section_is_launchers(const char *section);

/* Converts the text and stores it. On failure `err` says what is wrong with the value and what is
 * allowed, without naming the key. */
int al_config_key_set(const struct al_config_key *key, struct al_config *config, const char *text,
                      struct al_err *err);
