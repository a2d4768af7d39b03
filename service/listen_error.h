/*
 * gRPC does not say why it cannot listen on an address; this finds out.
 */
#pragma once

/* Binds a socket of its own to the address ("HOST:PORT", "[IPV6]:PORT", "unix:PATH") and gives it
 * up again: the error, as an errno, or 0 when nothing stands in the way. May look up a name. */
int al_listen_errno(const char *address);
