/*
 * The gRPC server: one completion queue with one thread, which never blocks. Everything here is
 * called by one thread (main's, or a test's), in the order of the declarations; grpc_init was
 * called before.
 */
#pragma once

#include "backends/api/backend.h"
#include "backends/base/err.h"
#include "service/config.h"

struct al_server;

/* Config and registry are borrowed and outlive the server. */
int al_server_create(const struct al_config *config, const struct al_registry *registry,
                     struct al_server **ret, struct al_err *err);

/* Adds an address: "HOST:PORT", "unix:PATH". Port 0 lets the system choose: *ret_port tells (for a
 * unix address it means nothing). */
int al_server_listen(struct al_server *server, const char *address, int *ret_port,
                     struct al_err *err);

int al_server_start(struct al_server *server, struct al_err *err);

/* From now on everything but Kill and GetJob is answered with UNAVAILABLE. */
void al_server_drain(struct al_server *server);

/* While draining: readable once no job is left whose caller waits for it. Borrowed. */
int al_server_idle_fd(const struct al_server *server);

/* Logs what does not work at the moment: once a minute. */
void al_server_report(struct al_server *server);

/* Cancels all jobs; their callers still get an answer. */
void al_server_cancel_jobs(struct al_server *server);

/* Ends what is left, closes all connections and frees the server. A started server must have been
 * drained; waits for the jobs, which are cancelled. NULL is ignored. */
void al_server_destroy(struct al_server *server);
