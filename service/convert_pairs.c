#include "service/convert_internal.h"

#include <stdlib.h>
#include <string.h>

#include "service/quote.h"

struct pair_ref {
    const struct al_env *pair;
};

/* Equal names stand in the order of the message. */
static int compare_pairs(const void *a, const void *b)
{
    const struct al_env *x = ((const struct pair_ref *)a)->pair;
    const struct al_env *y = ((const struct pair_ref *)b)->pair;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Sorts by name; of equal names the last one wins, as in every protobuf map. */
static int settle_pairs(struct convert *c, const struct al_env *pairs, size_t n,
                        const struct al_env **ret, size_t *ret_n)
{
    struct pair_ref *sorted = al_arena_alloc_array(c->arena, n, sizeof *sorted);
    struct al_env *settled = al_arena_alloc_array(c->arena, n, sizeof *settled);
    if (!sorted || !settled) {
        return convert_exhausted(c->err);
    }
    for (size_t i = 0; i < n; i++) {
        sorted[i].pair = &pairs[i];
    }
    qsort(sorted, n, sizeof *sorted, compare_pairs);
    size_t n_settled = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || strcmp(sorted[i].pair->name, sorted[i + 1].pair->name) != 0) {
            settled[n_settled++] = *sorted[i].pair;
        }
    }
    *ret = settled;
    *ret_n = n_settled;
    return 0;
}

static int check_size(struct al_err *err, const char *field, const struct al_env *pairs, size_t n,
                      size_t max)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += strlen(pairs[i].name) + strlen(pairs[i].value);
    }
    return convert_at_most(err, field, bytes, max, "bytes of names and values");
}

static int check_variable(struct al_err *err, const struct al_env *pair)
{
    if (pair->name[0] == '\0' || strchr(pair->name, '=')) {
        return al_err_set(
            err, AL_ERR_INVALID_ARGUMENT, "env[%s]: the name is %s (at least 1 byte, no '=')",
            al_quote_bare(pair->name).text, pair->name[0] == '\0' ? "empty" : "not allowed");
    }
    size_t bytes = strlen(pair->name) + 1 + strlen(pair->value);
    if (bytes > CONVERT_EXEC_STRING_MAX) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "env[%s]: %zu bytes of name and value, at most %u",
                          al_quote_bare(pair->name).text, bytes, CONVERT_EXEC_STRING_MAX);
    }
    return 0;
}

int convert_env(struct convert *c)
{
    struct al_job_spec *spec = &c->request->spec;
    size_t n = c->message->n_env;
    struct al_env *pairs = al_arena_alloc_array(c->arena, n, sizeof *pairs);
    if (!pairs) {
        return convert_exhausted(c->err);
    }
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        pairs[i] = (struct al_env){c->message->env[i]->key, c->message->env[i]->value};
        r = check_variable(c->err, &pairs[i]);
    }
    return r ?: check_size(c->err, "env", pairs, n, c->limits->env_bytes)
               ?: settle_pairs(c, pairs, n, &spec->env, &spec->n_env)
               ?: convert_at_most(c->err, "env", spec->n_env, AL_ENV_MAX, "variables");
}

int convert_metadata(struct convert *c)
{
    size_t n = c->message->n_metadata;
    struct al_env *pairs = al_arena_alloc_array(c->arena, n, sizeof *pairs);
    if (!pairs) {
        return convert_exhausted(c->err);
    }
    for (size_t i = 0; i < n; i++) {
        pairs[i] = (struct al_env){c->message->metadata[i]->key, c->message->metadata[i]->value};
    }
    return check_size(c->err, "metadata", pairs, n, c->limits->metadata_bytes)
               ?: settle_pairs(c, pairs, n, &c->request->metadata, &c->request->n_metadata);
}
