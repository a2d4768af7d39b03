/*
 * The command lines of bubblewrap and firejail. Pure: what is to be known of the machine comes with
 * the spec, and nothing is opened, asked or allocated here. The launcher is the only one who
 * executes them; what it starts inside is its own warden (backends/launcher/warden.h).
 */
#pragma once

#include <stddef.h>

#define AL_JAIL_ARGV_MAX 128
#define AL_JAIL_TEXT_MAX 1024

/* All texts are borrowed and go into the argv as they are. The root that the tool starts from holds
 * nothing but what a program may see (backends/launcher/rootfs.h). */
struct al_jail_spec {
    const char *program; /* the tool: an absolute path */
    const char *warden;  /* what it starts: an absolute path in that root */
    int link_fd;         /* what the warden inherits */
    int cpu_fd;
    int filter_fd; /* bubblewrap's: the compiled filter of system calls, at its begin */
    unsigned uid;  /* bubblewrap's: of the program inside; firejail leaves it as it is */
    /* Files of /proc to be covered by /dev/null, folders of it to be read-only; all of them exist.
     * NULL-terminated. */
    const char *const *hidden;
    const char *const *read_only;
};

struct al_jail_argv {
    const char *word[AL_JAIL_ARGV_MAX + 1]; /* NULL-terminated; some point into `text` */
    size_t n;
    char text[AL_JAIL_TEXT_MAX];
    size_t text_len;
};

/* 0, or -E2BIG. */
int al_jail_bubblewrap_argv(const struct al_jail_spec *spec, struct al_jail_argv *ret);
int al_jail_firejail_argv(const struct al_jail_spec *spec, struct al_jail_argv *ret);
