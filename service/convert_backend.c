#include "service/convert_internal.h"

#include <stdio.h>
#include <string.h>

#include "service/quote.h"

#define LANGUAGE_MAX 64
#define NAMES_MAX    240 /* bytes of a list within an error */

/* A list of names for an error: "a, b, ..." */
struct names {
    char text[NAMES_MAX + sizeof ", ..."];
    size_t len;
    bool cut;
};

static void add_name(struct names *names, const char *name, const char *version)
{
    char piece[NAMES_MAX];
    int n = snprintf(piece, sizeof piece, "%s%s%s%s", names->len > 0 ? ", " : "", name,
                     version[0] != '\0' ? "@" : "", version);
    if (names->cut) {
        return;
    }
    if (names->len + (size_t)n > NAMES_MAX) {
        n = snprintf(piece, sizeof piece, "%s...", names->len > 0 ? ", " : "");
        names->cut = true;
    }
    memcpy(names->text + names->len, piece, (size_t)n + 1);
    names->len += (size_t)n;
}

static bool is_language(const char *language)
{
    size_t len = strspn(language, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._+-@");
    const char *at = strchrnul(language, '@');
    bool whole_version = *at == '\0' || (at[1] != '\0' && !strchr(at + 1, '@'));
    return language[len] == '\0' && len <= LANGUAGE_MAX && at > language && whole_version;
}

static int find_backend(struct convert *c, struct al_backend **ret)
{
    const struct al_registry *registry = c->env->registry;
    struct al_backend *backend = al_registry_find(registry, c->message->backend);
    if (!backend) {
        struct names names = {0};
        for (size_t i = 0; i < registry->n; i++) {
            add_name(&names, registry->backends[i]->name, "");
        }
        return al_err_set(c->err, AL_ERR_NOT_FOUND, "backend: there is no %s (there are: %s)",
                          al_quote(c->message->backend).text,
                          registry->n > 0 ? names.text : "none");
    }
    if (!backend->available) {
        return al_err_set(c->err, AL_ERR_FAILED_PRECONDITION, "backend: %s is not available: %s",
                          backend->name, backend->unavailable_reason);
    }
    *ret = backend;
    return 0;
}

static int find_language(struct convert *c, const struct al_backend *backend, const char *wanted)
{
    const struct al_language *language = al_backend_find_language(backend, wanted);
    if (!language) {
        struct names names = {0};
        for (size_t i = 0; i < backend->n_languages; i++) {
            add_name(&names, backend->languages[i].name, backend->languages[i].version);
        }
        return al_err_set(c->err, AL_ERR_FAILED_PRECONDITION,
                          "language: backend %s has no %s (it has: %s)", backend->name,
                          al_quote(wanted).text, backend->n_languages > 0 ? names.text : "none");
    }
    if (language->unavailable) {
        return al_err_set(c->err, AL_ERR_FAILED_PRECONDITION,
                          "language: backend %s cannot run %s: %s", backend->name, language->name,
                          language->unavailable);
    }
    c->request->spec.language = language;
    return 0;
}

/* The field that asks for the capability `1u << index`. */
static const char *field_of(unsigned index)
{
    switch (1u << index) {
    case AL_CAP_STREAM:
        return "start";
    case AL_CAP_STDIN:
        return "stdin";
    case AL_CAP_PTY:
        return "terminal";
    case AL_CAP_INPUTS:
        return "inputs_json";
    case AL_CAP_EGRESS_ALLOWLIST:
    case AL_CAP_EGRESS_UNRESTRICTED:
        return "egress.policy";
    default:
        return al_capability_name(index); /* the others are called after their field */
    }
}

#define ROWS_DEFAULT 24
#define COLS_DEFAULT 80

static int check_side(const char *field, const char *side, uint32_t value, uint16_t by_default,
                      uint16_t *ret, struct al_err *err)
{
    if (value > UINT16_MAX) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "%s.%s: %u, at most %u", field, side, value,
                          UINT16_MAX);
    }
    *ret = value > 0 ? (uint16_t)value : by_default;
    return 0;
}

int al_convert_terminal(const char *field, const Airlock__V1__TerminalSize *size,
                        struct al_terminal_size *ret, struct al_err *err)
{
    int r = check_side(field, "rows", size->rows, ROWS_DEFAULT, &ret->rows, err);
    return r < 0 ? r : check_side(field, "cols", size->cols, COLS_DEFAULT, &ret->cols, err);
}

static int check_capabilities(const struct convert *c, const struct al_backend *backend)
{
    uint32_t needs =
        al_job_spec_needs(&c->request->spec) | (c->env->stream ? AL_CAP_STREAM | AL_CAP_STDIN : 0u);
    uint32_t lacks = needs & ~backend->capabilities;
    if (lacks == 0) {
        return 0;
    }
    unsigned first = (unsigned)__builtin_ctz(lacks);
    return al_err_set(c->err, AL_ERR_FAILED_PRECONDITION, "%s: backend %s lacks the capability %s",
                      field_of(first), backend->name, al_capability_name(first));
}

/* Whether one of two relative paths is the other, or a folder above it. */
static bool paths_meet(const char *a, const char *b)
{
    size_t n = strlen(a);
    size_t m = strlen(b);
    size_t shorter = n < m ? n : m;
    return strncmp(a, b, shorter) == 0 && (n == m || (n > m ? a : b)[shorter] == '/');
}

static int keep_code_apart(const struct convert *c)
{
    const struct al_job_spec *spec = &c->request->spec;
    const char *const ours[] = {spec->language->code_file, spec->language->output_file};
    static const char *const what[] = {"code", "compiled code"};
    for (size_t i = 0; i < spec->n_files; i++) {
        for (size_t k = 0; k < 2; k++) {
            if (ours[k] && paths_meet(spec->files[i].path, ours[k])) {
                return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                                  "files[%zu].path: the %s is put at %s; choose another path", i,
                                  what[k], ours[k]);
            }
        }
    }
    return 0;
}

static int keep_inputs_apart(const struct convert *c)
{
    const struct al_job_spec *spec = &c->request->spec;
    bool in_tmp = strcmp(spec->workdir, "/tmp") == 0;
    if (!spec->inputs_json) {
        return 0;
    }
    if (strncmp(spec->workdir, "/tmp/", 5) == 0 && paths_meet(spec->workdir + 5, AL_INPUTS_NAME)) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "workdir: the inputs are put at /tmp/" AL_INPUTS_NAME
                          "; choose another folder");
    }
    for (size_t i = 0; in_tmp && i < spec->n_files; i++) {
        if (paths_meet(spec->files[i].path, AL_INPUTS_NAME)) {
            return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                              "files[%zu].path: the inputs are put at /tmp/" AL_INPUTS_NAME
                              "; choose another path",
                              i);
        }
    }
    return 0;
}

int convert_backend(struct convert *c)
{
    const char *wanted = c->message->language[0] != '\0' ? c->message->language : "python";
    struct al_backend *backend = NULL;
    if (!is_language(wanted)) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "language: %s is not a language (NAME or NAME@VERSION, of "
                          "A-Za-z0-9._+-, at most %d bytes)",
                          al_quote(wanted).text, LANGUAGE_MAX);
    }
    int r = find_backend(c, &backend);
    if (!backend) {
        return r;
    }
    c->request->backend = backend;
    r = find_language(c, backend, wanted);
    c->request->spec.terminal = c->env->terminal;
    return r ?: keep_code_apart(c) ?: keep_inputs_apart(c) ?: check_capabilities(c, backend);
}
