/*
 * Which hosts an allowlist admits. Pure: no look-ups, no allocation, any thread. What policy is in
 * force (none, allowlist, unrestricted) is the caller's to decide first.
 *
 * Hosts and patterns are ASCII (A-labels for international names). Case and trailing dots do not
 * matter, nor do brackets and the zone of an IPv6 address; an IPv4-mapped IPv6 address is its IPv4
 * address. A pattern is one of:
 *   10.0.0.0/8, fd00::/8   every address in the block
 *   10.1.2.3, 2001:db8::1  that address
 *   *.example.com, api?.x  with `*` or `?`: as fnmatch, where `*` matches dots too and [a-c] and
 *                          [!a] are sets; it matches an address only if that is a public one
 *   example.com            that name and every name below it
 * Each but a block may end with ":PORT", and is then for that port only. What is none of these
 * matches nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AL_HOST_MAX 253 /* bytes; the longest host name */

struct al_address {
    uint8_t len; /* 4 or 16 */
    uint8_t bytes[16];
};

/* Reads an address in its usual spelling. False: it is none, `ret` is untouched. */
bool al_address_parse(const char *text, struct al_address *ret);

/* This machine itself, the unspecified address included. */
bool al_address_is_loopback(const struct al_address *address);

/* False for loopback, private, link-local (with the metadata addresses), shared, multicast and
 * reserved ranges. */
bool al_address_is_public(const struct al_address *address);

/* Whether one pattern admits the host. A port within `host` ("x.org:80", "[::1]:80") wins over
 * `port`; 0: not known, which a pattern with a port does not admit. At worst in the product of the
 * two lengths. */
bool al_host_match(const char *pattern, const char *host, uint16_t port);

/* Whether any of n patterns does; false for none of them. */
bool al_host_match_any(const char *const *patterns, size_t n, const char *host, uint16_t port);
