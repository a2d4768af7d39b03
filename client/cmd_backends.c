#include <unistd.h>

#include "client/cli.h"
#include "client/exit_code.h"
#include "client/output.h"

static void add_words(struct al_text *text, const char *label, char *const *words, size_t n)
{
    if (n == 0) {
        return;
    }
    al_text_add(text, "  %-14s", label);
    for (size_t i = 0; i < n; i++) {
        al_text_add(text, "%s", i > 0 ? " " : "");
        al_text_add_escaped(text, words[i]);
    }
    al_text_add(text, "\n");
}

static void add_languages(struct al_text *text, const Airlock__V1__BackendInfo *backend)
{
    for (size_t i = 0; i < backend->n_languages; i++) {
        const Airlock__V1__LanguageInfo *language = backend->languages[i];
        al_text_add(text, "  %-14s", i == 0 ? "languages" : "");
        al_text_add_escaped(text, language->name);
        if (*language->version) {
            al_text_add(text, "@");
            al_text_add_escaped(text, language->version);
        }
        for (size_t k = 0; k < language->n_aliases; k++) {
            al_text_add(text, k == 0 ? " (also " : ", ");
            al_text_add_escaped(text, language->aliases[k]);
        }
        al_text_add(text, "%s", language->n_aliases > 0 ? ")" : "");
        if (*language->unavailable_reason) {
            al_text_add(text, ": unavailable: ");
            al_text_add_escaped(text, language->unavailable_reason);
        }
        al_text_add(text, "\n");
    }
}

static void add_state(struct al_text *text, const Airlock__V1__BackendInfo *backend, bool colours)
{
    const char *colour = backend->available ? AL_COLOUR_GREEN : AL_COLOUR_RED;
    al_text_add(text, "%s%s%s", colours ? colour : "",
                backend->available ? "available" : "unavailable", colours ? AL_COLOUR_NONE : "");
    if (backend->is_default) {
        al_text_add(text, ", default");
    }
    if (*backend->version) {
        al_text_add(text, ", version ");
        al_text_add_escaped(text, backend->version);
    }
    if (*backend->unavailable_reason) {
        al_text_add(text, ": ");
        al_text_add_escaped(text, backend->unavailable_reason);
    }
    al_text_add(text, "\n");
}

static void add_backend(struct al_text *text, const Airlock__V1__BackendInfo *backend, bool colours)
{
    al_text_add(text, "%s", colours ? AL_COLOUR_BOLD : "");
    size_t name = text->len;
    al_text_add_escaped(text, backend->name);
    size_t width = text->len - name;
    al_text_add(text, "%s%*s", colours ? AL_COLOUR_NONE : "", width < 15 ? (int)(16 - width) : 1,
                "");
    add_state(text, backend, colours);
    add_languages(text, backend);
    add_words(text, "isolation", backend->isolation, backend->n_isolation);
    add_words(text, "capabilities", backend->capabilities, backend->n_capabilities);
}

static int print_backends(const struct al_options *options,
                          const Airlock__V1__ListBackendsResponse *response)
{
    struct al_text text = {0};
    bool colours = al_output_has_colours(STDOUT_FILENO);
    if (options->json) {
        return al_output_json(&response->base, true);
    }
    for (size_t i = 0; i < response->n_backends; i++) {
        add_backend(&text, response->backends[i], colours);
    }
    if (response->n_backends == 0) {
        al_text_add(&text, "no backends\n");
    }
    return al_text_flush(&text, STDOUT_FILENO);
}

int al_cmd_backends(const struct al_options *options)
{
    al_auto_arena struct al_arena *arena = NULL;
    Airlock__V1__ListBackendsRequest request = AIRLOCK__V1__LIST_BACKENDS_REQUEST__INIT;
    Airlock__V1__ListBackendsResponse *response;
    struct al_call_status status;
    struct al_cli cli;
    if (!al_cli_connect(&cli, options)) {
        return AL_EXIT_AIRLOCK;
    }
    int rc = al_client_list_backends(cli.client, &request, &cli.call, &arena, &response, &status);
    int code = rc < 0 ? al_cli_call_failed(&cli, &status)
                      : al_cli_output_done(print_backends(options, response));
    al_cli_disconnect(&cli);
    return code;
}
