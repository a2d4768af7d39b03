#include "backends/process/cell_backend.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/process/process.h"

#define CELL_CAPABILITIES                                                                         \
    (AL_CAP_STREAM | AL_CAP_STDIN | AL_CAP_SIGNALS | AL_CAP_PTY | AL_CAP_FILES | AL_CAP_ENV |     \
     AL_CAP_ARGS | AL_CAP_INPUTS | AL_CAP_WORKDIR | AL_CAP_ARTIFACTS | AL_CAP_MEMORY_ACCOUNTING | \
     AL_CAP_CPU_ACCOUNTING)

struct cell_backend {
    struct al_backend base; /* first: run casts back */
    struct al_launcher *launcher;
    enum al_cell_kind kind;
};

static int run(struct al_backend *backend, const struct al_job_spec *spec, struct al_ctl *ctl,
               struct al_sink *sink, struct al_result *result, struct al_err *err)
{
    struct cell_backend *b = (struct cell_backend *)backend;
    return al_process_run(b->launcher, b->kind, spec, ctl, sink, result, err);
}

static void destroy(struct al_backend *backend)
{
    free(backend);
}

static const struct al_backend_ops ops = {.run = run, .destroy = destroy};

struct al_backend *al_cell_backend_create(struct al_launcher *launcher, enum al_cell_kind kind,
                                          const char *name, uint32_t capabilities)
{
    const struct al_launcher_info *info = al_launcher_info(launcher);
    struct cell_backend *b = calloc(1, sizeof *b);
    if (!b) {
        return NULL;
    }
    uint32_t layers = info->cells[kind].layers;
    uint32_t lacks = (layers & AL_LAYER_CGROUP_MEMORY ? 0 : AL_CAP_MEMORY_ACCOUNTING) |
                     (layers & AL_LAYERS_CGROUP ? 0 : AL_CAP_CPU_ACCOUNTING);
    b->base = (struct al_backend){.ops = &ops,
                                  .name = name,
                                  .version = info->cells[kind].version,
                                  .languages = info->languages,
                                  .n_languages = info->n_languages,
                                  .capabilities = (CELL_CAPABILITIES | capabilities) & ~lacks,
                                  .isolation = layers,
                                  .available = info->cells[kind].available};
    snprintf(b->base.unavailable_reason, sizeof b->base.unavailable_reason, "%s",
             info->cells[kind].reason);
    b->launcher = launcher;
    b->kind = kind;
    return &b->base;
}
