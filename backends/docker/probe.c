#include "backends/docker/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/version.h"

#define OUTPUT_MAX 4096

struct collector {
    struct al_sink sink; /* first: append casts back */
    struct al_buf text;
};

static size_t append(struct al_sink *sink, enum al_channel channel, const uint8_t *data, size_t n)
{
    (void)channel;
    al_buf_append_some(&((struct collector *)sink)->text, data, n);
    return n;
}

static int run_version(struct al_docker_host *host, const struct al_docker_runtime *runtime,
                       const char *argv, struct al_ctl *ctl, struct collector *to,
                       struct al_result *result, struct al_err *err)
{
    const struct al_language language = {
        .name = runtime->image->name, .version = "", .code_file = runtime->image->code_file};
    struct al_job_spec spec = {.tenant_id = "",
                               .user_id = "",
                               .language = &language,
                               .workdir = "/sandbox",
                               .network = AL_NETWORK_NONE,
                               .quotas = {.cpu_ms = 10000,
                                          .wall_ms = 10000,
                                          .memory_mb = 256,
                                          .pids = 64,
                                          .file_size_mb = 8,
                                          .open_files = 64,
                                          .disk_mb = 8,
                                          .output_bytes = OUTPUT_MAX}};
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != sizeof bits) {
        return al_err_errno(err, errno, "getrandom");
    }
    snprintf(spec.job_id, sizeof spec.job_id, "%016llx", (unsigned long long)bits);
    return al_docker_run(host, runtime, "", argv, &spec, ctl, &to->sink, result, err);
}

/* Asks the first word of an argv. A program that does not know --version has "unknown". */
static int ask(struct al_docker_host *host, const struct al_docker_runtime *runtime,
               const char *argv, char *version, size_t size, uint32_t *ret_layers,
               struct al_err *err)
{
    static const struct al_sink_ops sink_ops = {.append = append};
    char program[AL_DOCKER_TEXT_MAX + sizeof " --version"];
    struct collector to = {.sink.ops = &sink_ops};
    struct al_result result;
    struct al_ctl *ctl = al_ctl_create();
    if (!ctl) {
        return al_err_errno(err, ENOMEM, "docker");
    }
    snprintf(program, sizeof program, "%.*s --version", (int)strcspn(argv, " "), argv);
    al_buf_init(&to.text, OUTPUT_MAX);
    al_result_init(&result);
    int rc = run_version(host, runtime, program, ctl, &to, &result, err);
    if (rc == 0) {
        *ret_layers = result.isolation;
        snprintf(version, size, "unknown");
        if (to.text.len > 0 && al_buf_append(&to.text, "", 1) == 0) {
            al_version_pick((const char *)to.text.data, version, size);
        }
    }
    al_result_finish(&result);
    al_buf_finish(&to.text);
    al_ctl_destroy(ctl);
    return rc;
}

static bool is_of_the_job(const char *argv)
{
    return argv[0] == '{';
}

/* As the launcher names the runtimes of its cells: "COMPILER+INTERPRETER.VERSION" for what is
 * compiled for an interpreter. */
int al_docker_probe(struct al_docker_host *host, const struct al_docker_runtime *runtime,
                    char *version, size_t size, uint32_t *ret_layers, struct al_err *err)
{
    const struct al_docker_image *image = runtime->image;
    char run[32] = "unknown", compile[32] = "unknown";
    uint32_t layers = AL_LAYERS_ALL, more = AL_LAYERS_ALL;
    bool interpreted = !is_of_the_job(image->argv);
    int rc = interpreted ? ask(host, runtime, image->argv, run, sizeof run, &layers, err) : 0;
    if (rc == 0 && image->compile[0] != '\0') {
        rc = ask(host, runtime, image->compile, compile, sizeof compile, &more, err);
    }
    if (rc < 0) {
        return rc;
    }
    *ret_layers = layers & more;
    const char *program = strrchr(image->argv, '/');
    program =
        program && program < image->argv + strcspn(image->argv, " ") ? program + 1 : image->argv;
    if (image->version[0] != '\0') {
        return 0;
    }
    if (image->compile[0] == '\0' || !interpreted) {
        snprintf(version, size, "%s", image->compile[0] == '\0' ? run : compile);
    } else {
        snprintf(version, size, "%.20s+%.*s.%.20s", compile,
                 (int)strcspn(program, " ") > 16 ? 16 : (int)strcspn(program, " "), program, run);
    }
    return 0;
}
