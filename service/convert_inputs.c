#include "service/convert_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "backends/base/cleanup.h"
#include "service/quote.h"

/* The JSON readers of the languages we run, and our own, recurse. */
#define DEPTH_MAX 200

/* What the completion queue's thread is willing to parse: some 15 ms at the worst. */
#define VALUES_MAX 65536

struct shape {
    size_t depth;  /* the deepest nesting of brackets */
    size_t values; /* about as many; never fewer than half */
};

/* Outside of strings; malformed text gives some numbers too. */
static struct shape measure_shape(const char *json)
{
    size_t depth = 0;
    struct shape shape = {0};
    bool in_string = false;
    for (const char *p = json; *p; p++) {
        if (in_string && *p == '\\') {
            p += p[1] != '\0';
        } else if (in_string) {
            in_string = *p != '"';
        } else if (*p == '{' || *p == '[') {
            depth++;
            shape.values++;
            shape.depth = depth > shape.depth ? depth : shape.depth;
        } else if (*p == '}' || *p == ']') {
            depth -= depth > 0;
        } else {
            shape.values += *p == ',';
            in_string = *p == '"';
        }
    }
    return shape;
}

/* The fewest digits, 15 to 17, that give back the number. */
static int measure_real(double value)
{
    char text[40];
    int digits = 15;
    do {
        snprintf(text, sizeof text, "%.*g", digits, value);
    } while (strtod(text, NULL) != value && ++digits < 17);
    return digits;
}

/* The digits that all real numbers below `value` need, so that 0.1 is written as 0.1. */
static int measure_reals(json_t *value)
{
    int digits = json_is_real(value) ? measure_real(json_real_value(value)) : 15;
    size_t i;
    const char *key;
    json_t *child;
    json_array_foreach(value, i, child)
    {
        int d = measure_reals(child);
        digits = d > digits ? d : digits;
    }
    json_object_foreach(value, key, child)
    {
        int d = measure_reals(child);
        digits = d > digits ? d : digits;
    }
    return digits;
}

static int canonicalise(struct convert *c, json_t *object)
{
    size_t flags =
        JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION((size_t)measure_reals(object));
    al_auto_free char *text = json_dumps(object, flags);
    c->request->spec.inputs_json = text ? al_arena_strdup(c->arena, text) : NULL;
    return c->request->spec.inputs_json ? 0 : convert_exhausted(c->err);
}

int convert_inputs(struct convert *c)
{
    const char *given = c->message->inputs_json;
    size_t len = strlen(given);
    if (len == 0) {
        return 0;
    }
    struct shape shape = measure_shape(given);
    int r = convert_at_most(c->err, "inputs_json", len, c->limits->inputs_bytes, "bytes")
                ?: convert_at_most(c->err, "inputs_json", shape.depth, DEPTH_MAX,
                                   "levels of nesting")
                ?: convert_at_most(c->err, "inputs_json", shape.values, VALUES_MAX, "values");
    if (r < 0) {
        return r;
    }
    json_error_t why;
    json_t *value = json_loadb(given, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!value) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "inputs_json: line %d, column %d: %s (a JSON object, each key once)",
                          why.line, why.column, al_quote_bare(why.text).text);
    }
    r = json_is_object(value) ? canonicalise(c, value)
                              : al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                                           "inputs_json: an array (it must be a JSON object)");
    json_decref(value);
    return r;
}
