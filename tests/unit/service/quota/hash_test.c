#include "service/quota/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* From another implementation of SipHash-1-3. */
static void test_hash__equals_known_values(void **state)
{
    (void)state;
    static const struct al_hash_key zero;
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"a", UINT64_C(0x407448d2b89b1813)},
        {"tenant", UINT64_C(0x384a6feef7a9a4f6)},
        {"exactly8", UINT64_C(0x9e90d598a0fe358f)},
        {"_default-and-more", UINT64_C(0x15193835f1bc0a8e)},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_true(al_hash(&zero, known[i].text, strlen(known[i].text)) == known[i].hash);
    }
    uint8_t bytes[128];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    assert_true(al_hash(&zero, bytes, sizeof bytes) == UINT64_C(0x6488077d8be5b7b5));
}

static void test_hash__depends_on_both_halves_of_the_key(void **state)
{
    (void)state;
    static const struct al_hash_key keys[] = {{0, 0}, {1, 0}, {0, 1}};
    uint64_t hash[3];
    for (size_t i = 0; i < 3; i++) {
        hash[i] = al_hash(&keys[i], "a", 1);
    }
    assert_true(hash[0] != hash[1] && hash[1] != hash[2] && hash[0] != hash[2]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash__equals_known_values),
        cmocka_unit_test(test_hash__depends_on_both_halves_of_the_key),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
