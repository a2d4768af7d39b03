/* For rootfs.c (what is done in each cell) and rootfs_template.c (once) only. */
#pragma once

#include <sys/types.h>

#include "backends/base/err.h"

int al_rootfs_mount(const char *source, const char *target, const char *type, unsigned long flags,
                    const char *options, struct al_err *err);

/* 0 also when it is there. */
int al_rootfs_make_dir(const char *path, mode_t mode, struct al_err *err);

/* A new one, which everybody may read. */
int al_rootfs_make_file(const char *path, const char *text, struct al_err *err);
