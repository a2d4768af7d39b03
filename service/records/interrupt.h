/* What becomes of the record of a job that did not outlive its server. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Makes the packed airlock.v1.Job failed/INTERRUPTED and finished at that time. *ret is the
 * caller's to free. -EBADMSG: the bytes are no Job. -ENOMEM. Thread-safe.
 */
int al_interrupt_job(const uint8_t *job, size_t len, int64_t finished_wall_ns, uint8_t **ret,
                     size_t *ret_len);
