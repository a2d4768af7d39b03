/*
 * Any bytes as a job's bundle. Every item lies in the bytes, names and texts are terminated and
 * hold no NUL, and reading goes on until the end or the first fault.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/launcher/bundle.h"
#include "tests/fuzz/fuzz.h"

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_within(const void *at, size_t n, const uint8_t *data, size_t len)
{
    const uint8_t *p = at;
    return p >= data && p <= data + len && n <= (size_t)(data + len - p);
}

static void require_item(const struct al_bundle_item *item, const uint8_t *data, size_t len)
{
    require(item->type >= AL_BUNDLE_CODE && item->type <= AL_BUNDLE_ARTIFACT);
    require((item->mode & ~0777u) == 0);
    require(is_within(item->name, 1, data, len));
    require(is_within(item->name, strlen(item->name) + 1, data, len));
    require(is_within(item->data, item->len, data, len));
    if (item->type >= AL_BUNDLE_ENV) {
        require(is_within(item->data, item->len + 1, data, len));
        require(strlen((const char *)item->data) == item->len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct al_bundle_reader r = {data, len};
    struct al_bundle_item item;
    int rc;
    for (size_t left = len; (rc = al_bundle_next(&r, &item)) == 1; left = r.left) {
        require(r.left < left);
        require_item(&item, data, len);
    }
    require(rc == -EBADMSG || (rc == 0 && r.left == 0));
    return 0;
}
