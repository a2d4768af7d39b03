/*
 * The keys of the launcher's sections: one table row each, and the conversion of a value by its
 * row.
 */
#pragma once

#include "backends/launcher/config.h"

struct al_cells_key;

/* `section` is "runtime" for the keys of a [runtime NAME]. NULL: there is no such key. */
const struct al_cells_key *al_cells_key_find(const char *section, const char *name);

/* Which key it is, below AL_CELLS_KEYS_MAX. */
unsigned al_cells_key_index(const struct al_cells_key *key);
#define AL_CELLS_KEYS_MAX 32

/* Converts the text and stores it in the configuration, or in its runtime if the key is of one.
 * `continues`: the line goes on with the list of the line above. On failure `err` says what is
 * wrong with the value and what is allowed, without naming the key. */
int al_cells_key_set(const struct al_cells_key *key, struct al_cells_config *config,
                     struct al_runtime *runtime, bool continues, const char *value,
                     struct al_err *err);

/* Whether it can be the name of a runtime, or an alias. */
bool al_cells_name_is_valid(const char *name);

void al_cells_texts_free(struct al_text *texts);
