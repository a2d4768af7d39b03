/* What both ends of a warden's link make and read; see warden.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/launcher/warden.h"

void al_warden_namespaces(uint64_t ret[AL_WARDEN_NAMESPACES])
{
    static const char *const names[AL_WARDEN_NAMESPACES] = {"user", "pid", "mnt",   "net",
                                                            "ipc",  "uts", "cgroup"};
    for (size_t i = 0; i < AL_WARDEN_NAMESPACES; i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        ret[i] = stat(path, &st) < 0 ? 0 : st.st_ino;
    }
}

static bool put_words(struct al_order_stage *order, size_t *len, const struct al_words *words)
{
    for (size_t i = 0; i < words->n; i++) {
        size_t n = strlen(words->word[i]) + 1;
        if (n > sizeof order->words - *len) {
            return false;
        }
        memcpy(order->words + *len, words->word[i], n);
        *len += n;
    }
    return true;
}

int al_order_stage_init(struct al_order_stage *ret, const struct al_assignment *assignment,
                        const struct al_runtime *runtime)
{
    size_t len = 0;
    memset(ret, 0, sizeof *ret);
    ret->type = AL_ORDER_STAGE;
    ret->assignment = *assignment;
    ret->assignment.runtime = 0; /* the only one that the warden knows */
    memcpy(ret->code_file, runtime->info.code_file, sizeof ret->code_file);
    memcpy(ret->output_file, runtime->info.output_file, sizeof ret->output_file);
    ret->n_argv = (uint32_t)runtime->argv.n;
    ret->n_compile = (uint32_t)runtime->compile.n;
    return put_words(ret, &len, &runtime->argv) && put_words(ret, &len, &runtime->compile) ? 0
                                                                                           : -E2BIG;
}

static bool get_words(struct al_order_stage *order, size_t *at, uint32_t n, struct al_words *ret)
{
    if (n > AL_ARGV_MAX) {
        return false;
    }
    for (ret->n = 0; ret->n < n; ret->n++) {
        size_t left = sizeof order->words - *at;
        size_t len = strnlen(order->words + *at, left);
        if (len == left) {
            return false;
        }
        ret->word[ret->n] = order->words + *at;
        *at += len + 1;
    }
    ret->word[n] = NULL;
    return true;
}

bool al_order_stage_runtime(struct al_order_stage *order, struct al_runtime *ret)
{
    size_t at = 0;
    *ret = (struct al_runtime){0};
    memcpy(ret->info.code_file, order->code_file, sizeof ret->info.code_file);
    memcpy(ret->info.output_file, order->output_file, sizeof ret->info.output_file);
    return get_words(order, &at, order->n_argv, &ret->argv) &&
           get_words(order, &at, order->n_compile, &ret->compile) && order->n_argv > 0;
}
