#include <inttypes.h>
#include <stdio.h>

#include "service/quota/quota.h"

#define WHEN_MAX 64

static const char *format_when(const struct al_quota_refusal *r, char *to, size_t size)
{
    if (r->retry_after_ms == 0) {
        (void)snprintf(to, size, "it can never run");
    } else {
        (void)snprintf(to, size, "retry in %s%.3f s%s", r->estimated ? "about " : "",
                       (double)r->retry_after_ms / 1e3,
                       r->estimated ? " (it depends on running jobs)" : "");
    }
    return to;
}

void al_quota_explain(const struct al_quota_refusal *refusal, char *to, size_t size)
{
    const struct al_quota_refusal *r = refusal;
    char when[WHEN_MAX];
    format_when(r, when, sizeof when);
    switch (r->which) {
    case AL_QUOTA_CPU_SECONDS:
        (void)snprintf(to, size,
                       "over the tenant's limit cpu_seconds_per_minute of %.10g: %.10g are used or "
                       "reserved in the last 60 s, %.10g more are asked for; %s",
                       r->limit, r->observed, r->requested, when);
        return;
    case AL_QUOTA_INFLIGHT:
        (void)snprintf(to, size, "over the tenant's limit max_inflight of %.0f: %.0f jobs run; %s",
                       r->limit, r->observed, when);
        return;
    case AL_QUOTA_TENANTS:
        (void)snprintf(to, size,
                       "over the server's limit tenants_max of %.0f: %.0f tenants are active; %s",
                       r->limit, r->observed, when);
        return;
    case AL_QUOTA_NONE:
        break;
    }
    (void)snprintf(to, size, "the quota could not be checked: out of memory; %s", when);
}
