/* Any bytes as the cache's file: the audit never reads outside of them. */
#include "cache/audit.h"

#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct al_cache_audit audit = {0};
    const char *wrong = al_cache_audit_file(data, len, &audit);
    if (!wrong && audit.page_bytes == 0) {
        abort();
    }
    return 0;
}
