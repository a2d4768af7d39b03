#include "backends/docker/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next placeholder in the text, or its end; *ret is what stands for it. */
static const char *find_placeholder(const char *text, const char *code, const char *output,
                                    const char **ret, size_t *ret_len)
{
    const char *a = strstr(text, "{code}");
    const char *b = strstr(text, "{output}");
    if (!a && !b) {
        *ret = "";
        *ret_len = 0;
        return text + strlen(text);
    }
    bool is_code = a && (!b || a < b);
    *ret = is_code ? code : output;
    *ret_len = is_code ? strlen("{code}") : strlen("{output}");
    return is_code ? a : b;
}

/* The paths may hold blanks: split first. */
int al_docker_words_make(struct al_docker_words *words, const char *text, const char *code,
                         const char *output)
{
    size_t size = 0;
    *words = (struct al_docker_words){.n = 0};
    FILE *f = open_memstream(&words->text, &size);
    if (!f) {
        return -ENOMEM;
    }
    for (const char *at = text; *at;) {
        const char *value;
        size_t skip;
        const char *next = find_placeholder(at, code, output, &value, &skip);
        for (; at < next; at++) {
            fputc(*at == ' ' ? '\0' : *at, f);
        }
        fputs(value, f);
        at += skip;
    }
    if (fclose(f) != 0) {
        return -ENOMEM;
    }
    for (const char *at = words->text; size > 0 && at <= words->text + size; at += strlen(at) + 1) {
        if (words->n == AL_CONTAINER_WORDS_MAX) {
            return -E2BIG;
        }
        words->word[words->n++] = at;
    }
    return 0;
}

void al_docker_words_finish(struct al_docker_words *words)
{
    free(words->text);
    *words = (struct al_docker_words){.n = 0};
}
