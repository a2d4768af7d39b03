#include "service/config.h"

#include <errno.h>

#include "backends/base/ini.h"
#include "service/config_keys.h"
#include "service/quote.h"

struct reader {
    struct al_config *config;
    uint64_t seen; /* by the index of the key */
    uint64_t seen_of_tenant[AL_CONFIG_TENANTS_MAX];
};

void al_config_defaults(struct al_config *config)
{
    *config = (struct al_config){
        .listen = {"127.0.0.1:50051"},
        .n_listen = 1,
        .data_dir = "/var/lib/airlock",
        .user = "nobody",
        .launcher = "",
        .default_backend = "native",
        .run_slots = 0,
        .stream_slots = 1000,
        .queue_max = 1024,
        .queue_tenant_max = 256,
        .ring_bytes = 1 << 20,
        .stream_keep_bytes = 1 << 20,
        .linger_max_ms = 300000,
        .output_memory_mb = 1024,
        .job_history = 1000,
        .drain_ms = 30000,
        .quota = {.cpu_ms_per_minute = AL_QUOTA_CPU_MS_DEFAULT,
                  .max_inflight = AL_QUOTA_INFLIGHT_DEFAULT},
        .tenants_max = AL_QUOTA_TENANTS_MAX_DEFAULT,
        .gate_mode = AL_GATE_ENFORCE,
        .cache_max_mb = 256,
        .cache_entry_max_kb = 4096,
        .cache_max_age_ms = 24 * 3600 * 1000,
        .records_max_count = 100000,
        .records_max_mb = 512,
        .records_max_age_ms = (int64_t)7 * 24 * 3600 * 1000,
        .limits = {.code_bytes = 1 << 20,
                   .files_bytes = 16 << 20,
                   .files = 256,
                   .stdin_bytes = 4 << 20,
                   .inputs_bytes = 1 << 20,
                   .metadata_bytes = 64 << 10,
                   .env_bytes = 64 << 10,
                   .args = 256,
                   .args_bytes = 256 << 10,
                   .defaults = AL_QUOTAS_DEFAULTS,
                   .maxima = AL_QUOTAS_MAXIMA,
                   .deadline_margin_ms = 250},
    };
    al_docker_config_defaults(&config->docker);
}

static int take_section(void *arg, const char *name, struct al_err *err)
{
    struct reader *r = arg;
    const char *tenant = al_config_section_tenant(name);
    if (tenant) {
        return al_config_tenant_open(r->config, tenant, err) ? 0 : -EINVAL;
    }
    if (al_docker_config_has(name)) {
        return al_docker_config_open(&r->config->docker, name, err);
    }
    if (al_config_section_is_ours(name) || al_config_section_is_launchers(name)) {
        return 0;
    }
    return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "unknown section [%s]",
                      al_quote_bare(name).text);
}

static int set_key(struct reader *r, struct al_config_tenant *tenant,
                   const struct al_ini_value *value, struct al_err *err)
{
    const char *section = tenant ? AL_CONFIG_TENANT_PREFIX : value->section;
    const struct al_config_key *key = al_config_key_find(section, value->key);
    if (!key) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT, "[%s] unknown key %s",
                          al_quote_bare(value->section).text, al_quote(value->key).text);
    }
    uint64_t *seen = tenant ? &r->seen_of_tenant[tenant - r->config->tenants] : &r->seen;
    uint64_t bit = UINT64_C(1) << al_config_key_index(key);
    if ((*seen & bit) && !al_config_key_repeats(key)) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "[%s] %s: given twice (an indented line continues the key above it)",
                          value->section, value->key);
    }
    if (!(*seen & bit) && al_config_key_repeats(key)) {
        r->config->n_listen = 0;
    }
    *seen |= bit;
    int rc = al_config_key_set(key, tenant ? (void *)tenant : r->config, value->text, err);
    al_err_wrap(err, "[%s] %s", value->section, value->key);
    return rc;
}

static int take_value(void *arg, const struct al_ini_value *value, struct al_err *err)
{
    struct reader *r = arg;
    if (al_config_section_is_launchers(value->section)) {
        return 0;
    }
    if (al_docker_config_has(value->section)) {
        int rc = al_docker_config_set(&r->config->docker, value->section, value->key,
                                      value->continues, value->text, err);
        al_err_wrap(err, "[%s] %s", value->section, al_quote_bare(value->key).text);
        return rc;
    }
    const char *name = al_config_section_tenant(value->section);
    if (!name) {
        return set_key(r, NULL, value, err);
    }
    struct al_config_tenant *tenant = al_config_tenant_open(r->config, name, err);
    return tenant ? set_key(r, tenant, value, err) : -EINVAL;
}

/* What no single key can check. */
static int check_whole(const struct al_config *c, const char *path, struct al_err *err)
{
    const struct al_quotas *d = &c->limits.defaults;
    const struct al_quotas *m = &c->limits.maxima;
    const struct {
        const char *name;
        bool above;
    } quotas[] = {
        {"cpu_seconds", d->cpu_ms > m->cpu_ms},
        {"wall_seconds", d->wall_ms > m->wall_ms},
        {"memory_mb", d->memory_mb > m->memory_mb},
        {"pids", d->pids > m->pids},
        {"file_size_mb", d->file_size_mb > m->file_size_mb},
        {"open_files", d->open_files > m->open_files},
        {"disk_mb", d->disk_mb > m->disk_mb},
        {"output_kb", d->output_bytes > m->output_bytes},
        {"artifact_kb", d->artifact_bytes > m->artifact_bytes},
    };
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; i++) {
        if (quotas[i].above) {
            return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                              "%s: [defaults] %s is above that of [maxima]", path, quotas[i].name);
        }
    }
    if (c->ring_bytes > c->output_memory_mb << 20) {
        return al_err_set(err, AL_ERR_INVALID_ARGUMENT,
                          "%s: [server] ring_kb is above output_memory_mb", path);
    }
    int rc = al_docker_config_check(&c->docker, err);
    if (rc < 0) {
        al_err_wrap(err, "%s", path);
        return rc;
    }
    return al_config_quota_check(c, path, err);
}

int al_config_read(struct al_config *config, const char *path, struct al_err *err)
{
    static const struct al_ini_handler handler = {.section = take_section, .value = take_value};
    struct reader r = {.config = config};
    int rc = al_ini_read(path, &handler, &r, err);
    return rc < 0 ? rc : check_whole(config, path, err);
}
