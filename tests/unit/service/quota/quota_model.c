#include "tests/unit/service/quota/quota_model.h"

#include <assert.h>

#include "service/quota/quota.h"

static int64_t sum_since(const struct model_tenant *tenant, int64_t after_ms)
{
    int64_t sum_us = 0;
    for (size_t i = 0; i < tenant->n_charges; i++) {
        sum_us += tenant->charges[i].at_ms > after_ms ? tenant->charges[i].us : 0;
    }
    return sum_us;
}

int64_t model_least_us(const struct model *model, size_t tenant)
{
    return sum_since(&model->tenants[tenant], model->now_ms - AL_QUOTA_WINDOW_MS);
}

int64_t model_most_us(const struct model *model, size_t tenant)
{
    return sum_since(&model->tenants[tenant],
                     model->now_ms - AL_QUOTA_WINDOW_MS - (AL_QUOTA_MERGE_MS - 1));
}

bool model_is_known(const struct model *model, size_t tenant, bool perhaps)
{
    const struct model_tenant *t = &model->tenants[tenant];
    bool rests = perhaps ? t->rests_perhaps : t->rests_certainly;
    return t->inflight > 0 || (rests && t->rest_ms + AL_QUOTA_WINDOW_MS > model->now_ms);
}

uint32_t model_known(const struct model *model, bool perhaps)
{
    uint32_t n = 0;
    for (size_t i = 0; i < MODEL_TENANTS; i++) {
        n += model_is_known(model, i, perhaps);
    }
    return n;
}

void model_admit(struct model *model, size_t tenant, int64_t cpu_us)
{
    model->tenants[tenant].inflight++;
    model->tenants[tenant].reserved_us += cpu_us;
}

void model_charge(struct model *model, size_t tenant, int64_t us, int64_t reserved_us)
{
    struct model_tenant *t = &model->tenants[tenant];
    assert(t->n_charges < MODEL_CHARGES_MAX);
    t->reserved_us -= reserved_us;
    t->charges[t->n_charges++] = (struct model_charge){.at_ms = model->now_ms, .us = us};
}

void model_end(struct model *model, size_t tenant, int64_t reserved_us)
{
    struct model_tenant *t = &model->tenants[tenant];
    t->reserved_us -= reserved_us;
    if (--t->inflight == 0) {
        t->rest_ms = model->now_ms;
        t->rests_certainly = model_least_us(model, tenant) > 0;
        t->rests_perhaps = model_most_us(model, tenant) > 0;
    }
}
