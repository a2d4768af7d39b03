#include "backends/jail/argv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static void add(struct al_jail_argv *argv, const char *word)
{
    if (argv->n < AL_JAIL_ARGV_MAX) {
        argv->word[argv->n] = word;
    }
    argv->n++; /* beyond the maximum too, so that it shows */
}

static void add_all(struct al_jail_argv *argv, const char *const *words)
{
    for (; *words; words++) {
        add(argv, *words);
    }
}

/* A word that is made here. */
__attribute__((format(printf, 2, 3))) static void add_text(struct al_jail_argv *argv,
                                                           const char *format, ...)
{
    char *at = argv->text + argv->text_len;
    size_t left = sizeof argv->text - argv->text_len;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(at, left, format, args);
    va_end(args);
    bool fits = len >= 0 && (size_t)len < left;
    argv->text_len += fits ? (size_t)len + 1 : 0;
    argv->n += fits ? 0 : AL_JAIL_ARGV_MAX; /* no room: as if there were too many words */
    add(argv, at);
}

static void add_number(struct al_jail_argv *argv, unsigned number)
{
    add_text(argv, "%u", number);
}

static int finish(struct al_jail_argv *argv)
{
    if (argv->n > AL_JAIL_ARGV_MAX) {
        return -E2BIG;
    }
    argv->word[argv->n] = NULL;
    return 0;
}

/* Namespaces one by one and not by --unshare-all, which forgives that some cannot be made. The
 * warden is pid 1, so that nothing inside can kill it. The order of mounts counts: the root first,
 * what lies over it behind it. /dev is the tool's own, but for the terminals and the shared memory,
 * whose bounds its own do not have. */
int al_jail_bubblewrap_argv(const struct al_jail_spec *spec, struct al_jail_argv *ret)
{
    static const char *const namespaces[] = {
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--unshare-cgroup",
        NULL,
    };
    static const char *const process[] = {
        "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL",
        "--hostname",        "sandbox",       NULL,
    };
    static const char *const mounts[] = {
        "--ro-bind", "/",        "/",        "--dev",    "/dev",   "--dev-bind", "/dev/pts",
        "/dev/pts",  "--bind",   "/dev/shm", "/dev/shm", "--proc", "/proc",      "--bind",
        "/sandbox",  "/sandbox", "--bind",   "/tmp",     "/tmp",   NULL,
    };
    *ret = (struct al_jail_argv){.n = 0};
    add(ret, spec->program);
    add_all(ret, namespaces);
    add(ret, "--uid");
    add_number(ret, spec->uid);
    add(ret, "--gid");
    add_number(ret, spec->uid);
    add_all(ret, process);
    add_all(ret, mounts);
    for (const char *const *path = spec->hidden; *path; path++) {
        add_all(ret, (const char *const[]){"--dev-bind", "/dev/null", *path, NULL});
    }
    for (const char *const *path = spec->read_only; *path; path++) {
        add_all(ret, (const char *const[]){"--ro-bind", *path, *path, NULL});
    }
    add_all(ret, (const char *const[]){"--chdir", "/", "--seccomp", NULL});
    add_number(ret, (unsigned)spec->filter_fd);
    add_all(ret, (const char *const[]){"--", spec->warden, "--warden", NULL});
    add_number(ret, (unsigned)spec->link_fd);
    add_number(ret, (unsigned)spec->cpu_fd);
    return finish(ret);
}

/* Without a profile, since one is for programs of a kind; what of the machine is there to be seen
 * is decided by the root. All users stay as they are, because there are none to hide, and no /home
 * to hide them in. Its own user namespace (--noroot) and filters stay out: the warden makes the
 * one, which must not be root's, and loads ours, so that the same is refused as elsewhere. */
int al_jail_firejail_argv(const struct al_jail_spec *spec, struct al_jail_argv *ret)
{
    static const char *const options[] = {
        "--quiet",
        "--noprofile",
        "--deterministic-exit-code",
        "--deterministic-shutdown",
        "--net=none",
        "--ipc-namespace",
        "--hostname=sandbox",

        "--nogroups",
        "--caps.drop=all",
        "--nonewprivs",
        "--allusers",
        "--keep-var-tmp",
        "--writable-etc",
        "--keep-config-pulse",
        NULL,
    };
    *ret = (struct al_jail_argv){.n = 0};
    add(ret, spec->program);
    add_all(ret, options);
    add_text(ret, "--keep-fd=%u,%u", (unsigned)spec->link_fd, (unsigned)spec->cpu_fd);
    for (const char *const *path = spec->hidden; *path; path++) {
        add_text(ret, "--blacklist=%s", *path);
    }
    for (const char *const *path = spec->read_only; *path; path++) {
        add_text(ret, "--read-only=%s", *path);
    }
    add_all(ret, (const char *const[]){spec->warden, "--warden", NULL});
    add_number(ret, (unsigned)spec->link_fd);
    add_number(ret, (unsigned)spec->cpu_fd);
    return finish(ret);
}
