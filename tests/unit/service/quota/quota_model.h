/*
 * What the enforcer promises, by brute force: every charge with its time, summed up anew for each
 * question. Where charges may be put together there are two answers: `least` counts a charge for
 * exactly the window, `most` for as long as it may be counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_TENANTS     6
#define MODEL_CHARGES_MAX 8192

struct model_charge {
    int64_t at_ms;
    int64_t us;
};

struct model_tenant {
    int64_t limit_us;
    uint32_t max_inflight;
    uint32_t inflight;
    int64_t reserved_us;
    int64_t rest_ms;      /* when its last job ended */
    bool rests_certainly; /* it had used something then, by either answer */
    bool rests_perhaps;   /* by `most` */
    struct model_charge charges[MODEL_CHARGES_MAX];
    size_t n_charges;
};

struct model {
    struct model_tenant tenants[MODEL_TENANTS];
    uint32_t tenants_max;
    int64_t now_ms;
};

int64_t model_least_us(const struct model *model, size_t tenant);
int64_t model_most_us(const struct model *model, size_t tenant);

/* Whether the tenant is accounted for; how many are. */
bool model_is_known(const struct model *model, size_t tenant, bool perhaps);
uint32_t model_known(const struct model *model, bool perhaps);

void model_admit(struct model *model, size_t tenant, int64_t cpu_us);

/* `reserved_us`: by how much the reservation shrinks. */
void model_charge(struct model *model, size_t tenant, int64_t us, int64_t reserved_us);
void model_end(struct model *model, size_t tenant, int64_t reserved_us);
