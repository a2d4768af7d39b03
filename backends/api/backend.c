#include "backends/api/backend.h"

#include <string.h>

static const char *const capability_names[AL_CAP_COUNT] = {
    "stream",
    "stdin",
    "signals",
    "pty",
    "files",
    "env",
    "args",
    "inputs",
    "workdir",
    "artifacts",
    "egress_allowlist",
    "egress_unrestricted",
    "memory_accounting",
    "cpu_accounting",
};

static const char *const layer_names[AL_LAYER_COUNT] = {
    "userns",        "pidns",       "mountns",    "netns",           "ipcns",        "utsns",
    "cgroupns",      "pivot_root",  "own_uid",    "no_capabilities", "no_new_privs", "seccomp",
    "cgroup_memory", "cgroup_pids", "cgroup_cpu", "rlimits",
};

const char *al_capability_name(unsigned index)
{
    return index < AL_CAP_COUNT ? capability_names[index] : NULL;
}

const char *al_layer_name(unsigned index)
{
    return index < AL_LAYER_COUNT ? layer_names[index] : NULL;
}

static bool version_matches(const char *version, const char *wanted)
{
    size_t n = strlen(wanted);
    return n > 0 && strncmp(version, wanted, n) == 0 && (version[n] == '\0' || version[n] == '.');
}

static bool name_matches(const struct al_language *lang, const char *name, size_t n)
{
    if (strlen(lang->name) == n && memcmp(lang->name, name, n) == 0) {
        return true;
    }
    for (const char *const *alias = lang->aliases; *alias; alias++) {
        if (strlen(*alias) == n && memcmp(*alias, name, n) == 0) {
            return true;
        }
    }
    return false;
}

const struct al_language *al_backend_find_language(const struct al_backend *backend,
                                                   const char *wanted)
{
    const char *at = strchrnul(wanted, '@');
    const struct al_language *unavailable = NULL;
    for (size_t i = 0; i < backend->n_languages; i++) {
        const struct al_language *lang = &backend->languages[i];
        if (name_matches(lang, wanted, (size_t)(at - wanted)) &&
            (*at == '\0' || version_matches(lang->version, at + 1)))
        {
            if (!lang->unavailable) {
                return lang;
            }
            unavailable = unavailable ? unavailable : lang;
        }
    }
    return unavailable;
}

uint32_t al_job_spec_needs(const struct al_job_spec *spec)
{
    uint32_t needs = 0;
    needs |= spec->stdin_bytes.len > 0 ? AL_CAP_STDIN : 0;
    needs |= spec->n_files > 0 ? AL_CAP_FILES : 0;
    needs |= spec->n_env > 0 ? AL_CAP_ENV : 0;
    needs |= spec->n_args > 0 ? AL_CAP_ARGS : 0;
    needs |= spec->inputs_json ? AL_CAP_INPUTS : 0;
    needs |= spec->terminal.rows > 0 ? AL_CAP_PTY : 0;
    needs |= strcmp(spec->workdir, "/sandbox") != 0 ? AL_CAP_WORKDIR : 0;
    needs |= spec->n_artifacts > 0 ? AL_CAP_ARTIFACTS : 0;
    needs |= spec->network == AL_NETWORK_ALLOWLIST ? AL_CAP_EGRESS_ALLOWLIST : 0;
    needs |= spec->network == AL_NETWORK_UNRESTRICTED ? AL_CAP_EGRESS_UNRESTRICTED : 0;
    return needs;
}

struct al_backend *al_registry_find(const struct al_registry *registry, const char *name)
{
    if (name[0] == '\0') {
        return registry->default_backend;
    }
    for (size_t i = 0; i < registry->n; i++) {
        if (strcmp(registry->backends[i]->name, name) == 0) {
            return registry->backends[i];
        }
    }
    return NULL;
}
