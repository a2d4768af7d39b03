#include "tests/limits/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cleanup.h"

#define WORKER_MAX (1 << 20)

static uint8_t worker[WORKER_MAX];
static struct al_file file;

void worker_init(void)
{
    al_auto_fclose FILE *f = fopen("tests/limits/worker", "re");
    size_t n = f ? fread(worker, 1, sizeof worker, f) : 0;
    if (n == 0 || n == sizeof worker) {
        fprintf(stderr, "tests/limits/worker cannot be read, or is too large\n");
        exit(1);
    }
    file = (struct al_file){"worker", {worker, n}, 0755};
}

struct al_job_spec worker_spec(const struct al_backend *backend, const char *code,
                               const char *const *steps)
{
    struct al_job_spec spec = al_test_spec(backend, "bash", code ? code : "exec ./worker \"$@\"");
    spec.files = &file;
    spec.n_files = 1;
    spec.args = steps;
    while (steps && spec.n_args < WORKER_STEPS_MAX && steps[spec.n_args]) {
        spec.n_args++;
    }
    return spec;
}

bool worker_read(const struct al_test_run *run, struct worker_said *ret)
{
    const char *text = (const char *)run->out[AL_STDOUT].data;
    const char *end = text ? strrchr(text, '\n') : NULL;
    if (!end) {
        return false;
    }
    const char *line = memrchr(text, '\n', (size_t)(end - text));
    line = line ? line + 1 : text;
    *ret = (struct worker_said){0};
    if (sscanf(line, "%" SCNd64 " %" SCNd64 " %" SCNd64, &ret->memory_kib, &ret->cpu_us,
               &ret->wall_us) == 3)
    {
        return true;
    }
    *ret = (struct worker_said){0};
    return sscanf(line, "%" SCNd64 " %" SCNd64, &ret->cpu_us, &ret->wall_us) == 2;
}
