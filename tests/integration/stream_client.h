/* Streams as a test drives them: by a thread that blocks, as tenant t, on the backend actor. */
#pragma once

#include "tests/integration/fixture.h"

Airlock__V1__StreamRequest al_stream_request(void);

/* Begins a Stream that does `code`. */
void al_stream_start(struct al_test_call *call, grpc_channel *channel, const char *code,
                     int deadline_ms);

/* The same of a job that lingers. */
void al_stream_start_lingering(struct al_test_call *call, grpc_channel *channel, const char *code,
                               double linger_seconds, int deadline_ms);

/* Begins a Stream that attaches. */
void al_stream_attach(struct al_test_call *call, grpc_channel *channel, const char *tenant,
                      const char *job_id, uint64_t after_sequence);

void al_stream_send_stdin(struct al_test_call *call, const void *data, size_t len);
void al_stream_send_eof(struct al_test_call *call, bool value);
void al_stream_send_signal(struct al_test_call *call, int signo);

/* What a job has said so far, over all streams that followed it. */
struct al_heard {
    char job_id[32];
    uint64_t sequence;
    uint64_t stdin_received;
    int64_t wall_ns;   /* when the last event was */
    char statuses[16]; /* a digit each */
    size_t n_statuses;
    size_t stdout_bytes;
    uint32_t sum; /* of the bytes */
    char text[64];
    Airlock__V1__JobStatus result; /* 0: none yet */
    Airlock__V1__Reason reason;
};

/* The next message, which must follow what was heard; false when there is none any more. */
bool al_hear(struct al_test_call *call, struct al_heard *heard);
void al_hear_all(struct al_test_call *call, struct al_heard *heard);
void al_hear_until_running(struct al_test_call *call, struct al_heard *heard);

/* The first answer to attach. */
void al_hear_greeting(struct al_test_call *call, struct al_heard *heard);

grpc_status_code al_stream_kill(struct al_fixture *f, const char *tenant, const char *job_id,
                                bool *ret_killed, Airlock__V1__JobStatus *ret_status);
