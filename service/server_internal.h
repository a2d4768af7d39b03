/* What server.c offers to call.c only. */
#pragma once

struct al_call;

/* The last reference is gone: frees the call. Any thread. */
void al_server_free_call(struct al_call *call);
