#include "backends/launcher/may_prestart.h"

#include <string.h>

#include "backends/launcher/message.h"

/* More than twice what python and node need until they come to the program. */
#define MEMORY_MIN_MB  128
#define PIDS_MIN       32
#define OPEN_FILES_MIN 64
#define CPU_MIN_MS     500

/* What the dynamic linker, libc, OpenSSL and the interpreters read when they start. A name that
 * ends with '*' stands for all that begin with it. */
static const char *const read_at_start[] = {
    "LD_*",   "GLIBC_*", "MALLOC_*", "LC_*",     "LANG*",    "LOCPATH", "NLSPATH",  "GCONV_PATH",
    "TZ*",    "HOME",    "PATH",     "PYTHON*",  "NODE_*",   "UV_*",    "SSL_*",    "OPENSSL_*",
    "TMPDIR", "TERM*",   "COLUMNS",  "NO_COLOR", "FORCE_*",  "DEBUG",   "CI",       "V8_*",
    "ICU_*",  "_*",      "TMP",      "TEMP",     "RESOLV_*", "XDG_*",   "GETCONF*",
};

static bool is_read_at_start(const char *name)
{
    for (size_t i = 0; i < sizeof read_at_start / sizeof read_at_start[0]; i++) {
        const char *pattern = read_at_start[i];
        size_t n = strcspn(pattern, "*");
        if (strncmp(name, pattern, n) == 0 && (pattern[n] == '*' || name[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Python looks for packages of the user's below HOME, which is the default workdir. */
static bool is_looked_for_at_start(const char *path)
{
    return strncmp(path, ".local/", 7) == 0;
}

bool al_job_may_be_prestarted(const struct al_job_spec *spec)
{
    const struct al_quotas *q = &spec->quotas;
    if (spec->terminal.rows > 0 || strcmp(spec->workdir, AL_WORKDIR_DEFAULT) != 0 ||
        q->memory_mb < MEMORY_MIN_MB || q->pids < PIDS_MIN || q->open_files < OPEN_FILES_MIN ||
        q->cpu_ms < CPU_MIN_MS)
    {
        return false;
    }
    for (size_t i = 0; i < spec->n_env; i++) {
        if (is_read_at_start(spec->env[i].name)) {
            return false;
        }
    }
    for (size_t i = 0; i < spec->n_files; i++) {
        if (is_looked_for_at_start(spec->files[i].path)) {
            return false;
        }
    }
    return true;
}
