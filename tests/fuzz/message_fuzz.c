/*
 * Any bytes as any message between airlockd and the launcher. A decoder accepts exactly what its
 * encoder makes: what was decoded gives the same bytes when it is encoded again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/launcher/message.h"
#include "tests/fuzz/fuzz.h"

static uint8_t again[AL_MSG_BYTES_MAX];

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void require_same(const uint8_t *data, size_t len, size_t again_len)
{
    require(len == again_len && memcmp(data, again, len) == 0);
}

#define TRY(name)                                                 \
    static bool try_##name(const uint8_t *data, size_t len)       \
    {                                                             \
        static struct al_msg_##name m;                            \
        if (al_msg_decode_##name(data, len, &m) < 0) {            \
            return false;                                         \
        }                                                         \
        require_same(data, len, al_msg_encode_##name(&m, again)); \
        return true;                                              \
    }

TRY(hello)
TRY(spawn)
TRY(refused)
TRY(compiled)
TRY(exit)
TRY(signal)
TRY(usage)

static bool try_empty(const uint8_t *data, size_t len)
{
    static const enum al_msg_type types[] = {AL_MSG_SPAWNED, AL_MSG_STARTED, AL_MSG_KILL};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (al_msg_decode_empty(types[i], data, len) == 0) {
            require_same(data, len, al_msg_encode_empty(types[i], again));
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    int taken = try_hello(data, len) + try_spawn(data, len) + try_refused(data, len) +
                try_compiled(data, len) + try_exit(data, len) + try_signal(data, len) +
                try_usage(data, len) + try_empty(data, len);
    require(taken <= 1); /* no bytes are two messages */
    return 0;
}
