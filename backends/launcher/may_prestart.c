#include "backends/launcher/may_prestart.h"

#include <string.h>

#include "backends/launcher/message.h"

/* More than twice what python and node need until they come to the program. */
#define MEMORY_MIN_MB  128
#define PIDS_MIN       32
#define OPEN_FILES_MIN 64
#define CPU_MIN_MS     500

#define BASH_ENV_BYTES_MAX 4096 /* it reads them byte by byte */

/* What the dynamic linker, libc, OpenSSL and the interpreters read when they start. A name that
 * ends with '*' stands for all that begin with it. */
static const char *const read_at_start[] = {
    "LD_*",   "GLIBC_*", "MALLOC_*", "LC_*",     "LANG*",    "LOCPATH", "NLSPATH",  "GCONV_PATH",
    "TZ*",    "HOME",    "PATH",     "PYTHON*",  "NODE_*",   "UV_*",    "SSL_*",    "OPENSSL_*",
    "TMPDIR", "TERM*",   "COLUMNS",  "NO_COLOR", "FORCE_*",  "DEBUG",   "CI",       "V8_*",
    "ICU_*",  "_*",      "TMP",      "TEMP",     "RESOLV_*", "XDG_*",   "GETCONF*",
};

/* What bash reads when it starts, or does not let a script set as it takes it from its environment.
 */
static const char *const special_to_bash[] = {
    "BASH*",   "CDPATH",   "CHILD_MAX",  "COMP*",      "COPROC",   "DIRSTACK",    "EMACS",
    "ENV",     "EPOCH*",   "EUID",       "EXECIGNORE", "FCEDIT",   "FIGNORE",     "FUNC*",
    "GLOB*",   "GROUPS",   "HIST*",      "hist*",      "HOST*",    "IFS",         "IGNOREEOF",
    "INPUTRC", "INSIDE_*", "LINENO",     "LINES",      "MACHTYPE", "MAIL*",       "MAPFILE",
    "OLDPWD",  "OPT*",     "OSTYPE",     "PIPE*",      "POSIX*",   "PPID",        "PROMPT*",
    "PS*",     "PWD",      "RANDOM",     "READLINE_*", "REPLY",    "SECONDS",     "SHELL*",
    "SHLVL",   "SRANDOM",  "TIMEFORMAT", "TMOUT",      "UID",      "auto_resume",
};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static bool is_listed(const char *name, const char *const *patterns, size_t n_patterns)
{
    for (size_t i = 0; i < n_patterns; i++) {
        size_t n = strcspn(patterns[i], "*");
        if (strncmp(name, patterns[i], n) == 0 && (patterns[i][n] == '*' || name[n] == '\0')) {
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

static bool none_can_tell(const struct al_job_spec *spec)
{
    const struct al_quotas *q = &spec->quotas;
    if (spec->terminal.rows > 0 || strcmp(spec->workdir, AL_WORKDIR_DEFAULT) != 0 ||
        q->memory_mb < MEMORY_MIN_MB || q->pids < PIDS_MIN || q->open_files < OPEN_FILES_MIN ||
        q->cpu_ms < CPU_MIN_MS)
    {
        return false;
    }
    for (size_t i = 0; i < spec->n_env; i++) {
        if (is_listed(spec->env[i].name, read_at_start, LENGTH(read_at_start))) {
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

/* A variable of another name goes through bash to the programs that it starts. */
static bool is_name_in_bash(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return name[0] && name[strspn(name, letters)] == '\0' && (name[0] < '0' || name[0] > '9');
}

static bool bash_can_not_tell(const struct al_job_spec *spec)
{
    size_t bytes = 0;
    for (size_t i = 0; i < spec->n_env; i++) {
        const struct al_env *env = &spec->env[i];
        bytes += strlen(env->name) + strlen(env->value);
        if (!is_name_in_bash(env->name) ||
            is_listed(env->name, special_to_bash, LENGTH(special_to_bash))) {
            return false;
        }
    }
    return spec->n_args == 0 && bytes <= BASH_ENV_BYTES_MAX;
}

uint32_t al_job_may_prestart(const struct al_job_spec *spec)
{
    if (!none_can_tell(spec)) {
        return 0;
    }
    return 1u << AL_PRESTART_PYTHON | 1u << AL_PRESTART_NODE |
           (bash_can_not_tell(spec) ? 1u << AL_PRESTART_BASH : 0);
}
