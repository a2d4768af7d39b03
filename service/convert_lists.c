#include "service/convert_internal.h"

#include <string.h>

#include "service/quote.h"

#define HOSTS_MAX 256
#define HOST_MAX  253 /* bytes; the longest host name */

int convert_args(struct convert *c)
{
    size_t n = c->message->n_args;
    char *const *args = c->message->args;
    int r = convert_at_most(c->err, "args", n, c->limits->args, "arguments");
    size_t bytes = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        size_t len = strlen(args[i]);
        bytes += len + 1;
        if (len > CONVERT_EXEC_STRING_MAX) {
            r = al_err_set(c->err, AL_ERR_INVALID_ARGUMENT, "args[%zu]: %zu bytes, at most %u", i,
                           len, CONVERT_EXEC_STRING_MAX);
        }
    }
    c->request->spec.args = (const char *const *)args;
    c->request->spec.n_args = n;
    return r
               ?: convert_at_most(c->err, "args", bytes, c->limits->args_bytes,
                                  "bytes, terminators included");
}

static bool is_host(const char *host)
{
    for (const char *p = host; *p; p++) {
        if (*p <= ' ' || *p > '~') {
            return false;
        }
    }
    return host[0] != '\0' && strlen(host) <= HOST_MAX;
}

static int convert_hosts(struct convert *c, const Airlock__V1__EgressAllowlist *egress)
{
    size_t n = egress->n_hosts;
    int r = convert_at_most(c->err, "egress.hosts", n, HOSTS_MAX, "hosts");
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!is_host(egress->hosts[i])) {
            r = al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                           "egress.hosts[%zu]: %s is not a host, pattern or CIDR block (1 to %d "
                           "printable ASCII characters, no space)",
                           i, al_quote(egress->hosts[i]).text, HOST_MAX);
        }
    }
    c->request->spec.hosts = (const char *const *)egress->hosts;
    c->request->spec.n_hosts = n;
    return r;
}

int convert_egress(struct convert *c)
{
    static const Airlock__V1__EgressAllowlist absent = AIRLOCK__V1__EGRESS_ALLOWLIST__INIT;
    const Airlock__V1__EgressAllowlist *egress = c->message->egress ? c->message->egress : &absent;
    int policy = (int)egress->policy;
    if (policy < 0 || policy > AL_NETWORK_UNRESTRICTED) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "egress.policy: %d is not a known value (0 to %d)", policy,
                          AL_NETWORK_UNRESTRICTED);
    }
    c->request->spec.network = policy == 0 ? AL_NETWORK_NONE : (enum al_network_policy)policy;
    if (egress->n_hosts > 0 && c->request->spec.network != AL_NETWORK_ALLOWLIST) {
        return al_err_set(c->err, AL_ERR_INVALID_ARGUMENT,
                          "egress.hosts: allowed only with NETWORK_POLICY_ALLOWLIST");
    }
    return convert_hosts(c, egress);
}
