/*
 * The egress gate: which hosts a program names, and whether its allowlist admits them. Static and
 * best effort, so that obvious leaks never reach a sandbox; what a program computes is the
 * sandbox's to stop.
 *
 * It reads string literals (in Bash words and here-documents), never comments: Python, JavaScript
 * and TypeScript, Bash, and in any other language every URL in the text. Files sent along are read
 * when their extension says that they are programs. Rules:
 *   "url"        scheme://[user@]host[:port]
 *   "address"    an IPv4 or IPv6 address of its own
 *   "host_port"  host:port, /dev/tcp/host/port
 *   "bare_name"  a literal that is nothing but a dotted name; weak, it may be a file's name
 *   "loopback"   any of them that is this machine: a program's own server is its own business
 * Percent-encoding, case, IDNA and odd spellings of IPv4 are undone. A part of a host that only the
 * running program knows stands as `*`; a host whose end is not known is not judged.
 *
 * False positives: of 64 ordinary scripts that never touch the network (tests/unit/service/gate/
 * corpus) policy none blocks 9, or 14 %; all of them for what is only a name or data (XML
 * namespaces, JSON schemas, a link in a docstring, a URL or a network that is taken apart).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/api/job_spec.h"
#include "proto/wire/arena.h"

#define AL_GATE_FINDINGS_MAX 256

struct al_gate_finding {
    const char *host; /* printable ASCII, at most AL_HOST_MAX bytes, without brackets */
    uint16_t port;    /* 0: none */
    const char *file; /* the path within the spec; NULL: the code */
    uint32_t line;    /* from 1; where the URL, host or address begins */
    const char *rule; /* static */
    bool blocks;      /* neither weak nor loopback, and the spec's network does not admit it */
};

struct al_gate_report {
    const struct al_gate_finding *findings; /* in the order of the program, code first */
    size_t n;
    const struct al_gate_finding *block; /* the first that blocks, or NULL; one of `findings` */
    bool truncated;                      /* there were more, all of which have been judged */
};

/*
 * Pure; any thread. Everything reported lies in the arena. Time is linear in the bytes read; a
 * program with so many hosts that judging them against the allowlist would take over 2^18
 * comparisons is blocked at the next one. 0 or -ENOMEM.
 */
int al_gate_scan(const struct al_job_spec *spec, struct al_arena *arena,
                 struct al_gate_report *ret);

/* Writes "egress to HOST is not allowed (line N of FILE, rule R)", cut to `size` (at least 1) and
 * valid UTF-8. */
void al_gate_explain(const struct al_gate_finding *finding, char *to, size_t size);
