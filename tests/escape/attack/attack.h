/*
 * The attacks: small pieces of hostile code that run inside a cell. Each says precisely what came
 * of it, and judges nothing: what it should be is in tests/escape/rows.c.
 */
#pragma once

#include <errno.h>
#include <stddef.h>

/* What came of an attack: 0, it did what it wanted; the errno it met; or this, when it could not
 * even be tried. */
#define NOT_TRIED (-1)

struct attack {
    const char *name;
    int (*run)(void); /* in a process of its own; NULL: the call below */
    long nr;
    unsigned long args[6];
};

#define DOES(attack, fn)          \
    {                             \
        .name = attack, .run = fn \
    }
#define CALL(attack, number, ...)                             \
    {                                                         \
        .name = attack, .nr = number, .args = { __VA_ARGS__ } \
    }

/* Ends with a name of NULL. */
extern const struct attack call_attacks[];
extern const struct attack process_attacks[];
extern const struct attack memory_attacks[];
extern const struct attack init_attacks[];
extern const struct attack file_attacks[];
extern const struct attack proc_attacks[];
extern const struct attack net_attacks[];
extern const struct attack limit_attacks[];

/* Where the test has its files on the host, and below it, in `shared`, those that the cell sees. */
const char *host_dir(void);

/* "host_dir/name". */
const char *host_path(const char *name);

/* 0 or errno, from what a call returned. */
static inline int outcome(long rc)
{
    return rc < 0 ? errno : 0;
}

/* Opens and closes; 0 or errno. */
int try_open(const char *path, int flags);

/* What a child that runs `fn` and exits with what it returns came to; NOT_TRIED when it died. */
int in_child(int (*fn)(void));
