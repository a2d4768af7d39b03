#include "backends/base/host_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *name;
    const char *pattern;
    const char *host;
    uint16_t port;
    bool admits;
};

static const struct row rows[] = {
    {"name: itself", "example.com", "example.com", 0, true},
    {"name: below it", "example.com", "a.b.example.com", 0, true},
    {"name: case", "Example.COM", "eXample.com", 0, true},
    {"name: trailing dots", "example.com.", "a.example.com.", 0, true},
    {"name: not a suffix of a label", "example.com", "badexample.com", 0, false},
    {"name: not above it", "a.example.com", "example.com", 0, false},
    {"name: not the end of an address", "1", "10.0.0.1", 0, false},
    {"name: single label", "localhost", "localhost", 0, true},
    {"name: longer than the host", "a.example.com", "e.com", 0, false},

    {"glob: star", "*.example.com", "a.b.example.com", 0, true},
    {"glob: star wants its dot", "*.example.com", "example.com", 0, false},
    {"glob: case", "*.EXAMPLE.com", "A.example.COM", 0, true},
    {"glob: question mark", "api?.example.com", "api1.example.com", 0, true},
    {"glob: question mark is one", "api?.example.com", "api12.example.com", 0, false},
    {"glob: not below it", "a?.example.com", "x.a1.example.com", 0, false},
    {"glob: stars in the middle", "a*b*c.example.com", "aXbYbZc.example.com", 0, true},
    {"glob: set", "[a-c]*.example.com", "b1.example.com", 0, true},
    {"glob: set not", "[a-c]*.example.com", "d1.example.com", 0, false},
    {"glob: negated set", "[!a-c]*.example.com", "d1.example.com", 0, true},
    {"glob: set that never ends", "*[abc", "x[abc", 0, true},
    {"glob: everything", "*", "example.com", 0, true},
    {"glob: public address", "*", "8.8.8.8", 0, true},
    {"glob: private address", "*", "10.0.0.1", 0, false},
    {"glob: metadata address", "169.254.*", "169.254.169.254", 0, false},
    {"glob: mapped private address", "*", "::ffff:10.0.0.1", 0, false},
    {"glob: local IPv6", "*", "fe80::1", 0, false},
    {"glob: public IPv6", "2606:4700:*", "2606:4700::1111", 0, true},
    {"glob: many stars end", "*a*a*a*a*a*a*a*a*a*a*a*a*b",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0,
     false},

    {"address: itself", "10.1.2.3", "10.1.2.3", 0, true},
    {"address: another", "10.1.2.3", "10.1.2.4", 0, false},
    {"address: nothing below it", "10.1.2.3", "x.10.1.2.3", 0, false},
    {"address: IPv6 spelled otherwise", "2001:db8:0:0::1", "2001:DB8::1", 0, true},
    {"address: IPv6 in brackets", "[2001:db8::1]", "2001:db8::1", 0, true},
    {"address: IPv6 with a zone", "fe80::1", "fe80::1%eth0", 0, true},
    {"address: mapped", "10.1.2.3", "::ffff:10.1.2.3", 0, true},
    {"address: mapped pattern", "::ffff:a01:203", "10.1.2.3", 0, true},

    {"block: in", "10.0.0.0/8", "10.200.3.4", 0, true},
    {"block: out", "10.0.0.0/8", "11.0.0.1", 0, false},
    {"block: odd prefix in", "172.16.0.0/12", "172.31.255.255", 0, true},
    {"block: odd prefix out", "172.16.0.0/12", "172.32.0.0", 0, false},
    {"block: host bits do not matter", "10.1.2.3/8", "10.9.9.9", 0, true},
    {"block: all", "0.0.0.0/0", "203.0.113.9", 0, true},
    {"block: one", "203.0.113.9/32", "203.0.113.9", 0, true},
    {"block: one other", "203.0.113.9/32", "203.0.113.8", 0, false},
    {"block: mapped host", "10.0.0.0/8", "::ffff:10.0.0.9", 0, true},
    {"block: mapped block", "::ffff:10.0.0.0/104", "10.0.0.9", 0, true},
    {"block: mapped block out", "::ffff:10.0.0.0/104", "11.0.0.9", 0, false},
    {"block: no name", "0.0.0.0/0", "example.com", 0, false},
    {"block: the other family", "0.0.0.0/0", "2001:db8::1", 0, false},
    {"block: IPv6 in", "2001:db8::/32", "2001:db8:ffff::1", 0, true},
    {"block: IPv6 out", "2001:db8::/32", "2001:db9::1", 0, false},
    {"block: IPv6 odd prefix in", "fc00::/7", "fd12::1", 0, true},
    {"block: IPv6 odd prefix out", "fc00::/7", "fe00::1", 0, false},
    {"block: IPv6 all", "::/0", "2001:db8::1", 0, true},
    {"block: IPv6 one", "2001:db8::1/128", "[2001:db8::1]", 0, true},

    {"port: asked", "example.com:443", "example.com", 443, true},
    {"port: within the host", "example.com:443", "example.com:443", 0, true},
    {"port: another", "example.com:443", "example.com", 80, false},
    {"port: unknown", "example.com:443", "example.com", 0, false},
    {"port: any", "example.com", "example.com:8443", 0, true},
    {"port: glob", "*.example.com:443", "a.example.com", 443, true},
    {"port: address", "10.0.0.1:80", "10.0.0.1", 80, true},
    {"port: IPv6", "[2001:db8::1]:80", "[2001:db8::1]:80", 0, true},
    {"port: IPv6 another", "[2001:db8::1]:80", "[2001:db8::1]:81", 0, false},
    {"port: none is none", "example.com:", "example.com", 0, false},
    {"port: too big", "example.com:65536", "example.com", 0, false},

    {"broken: prefix too long", "10.0.0.0/33", "10.0.0.1", 0, false},
    {"broken: no prefix", "10.0.0.0/", "10.0.0.1", 0, false},
    {"broken: negative prefix", "10.0.0.0/-1", "10.0.0.1", 0, false},
    {"broken: short address", "10.0/8", "10.0.0.1", 0, false},
    {"broken: IPv6 prefix", "2001:db8::/129", "2001:db8::1", 0, false},
    {"broken: mapped prefix", "::ffff:10.0.0.0/8", "10.0.0.1", 0, false},
    {"broken: a URL", "http://example.com/", "example.com", 0, false},
    {"broken: empty pattern", "", "example.com", 0, false},
    {"broken: empty host", "*", "", 0, false},
    {"broken: dots", "...", "...", 0, false},
    {"broken: open bracket", "[2001:db8::1", "2001:db8::1", 0, false},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    assert_int_equal(al_host_match(row->pattern, row->host, row->port), row->admits);
}

static void test_any__nothing_in_an_empty_list(void **state)
{
    (void)state;
    assert_false(al_host_match_any(NULL, 0, "example.com", 443));
}

static void test_any__one_is_enough(void **state)
{
    (void)state;
    static const char *const patterns[] = {"example.org", "10.0.0.0/8", "*.net"};
    assert_true(al_host_match_any(patterns, 3, "10.3.3.3", 0));
    assert_true(al_host_match_any(patterns, 3, "x.net", 0));
    assert_false(al_host_match_any(patterns, 3, "example.com", 0));
}

static void test_match__a_host_of_any_length(void **state)
{
    (void)state;
    static char host[5000];
    memset(host, 'a', sizeof host - 1);
    assert_false(al_host_match("*", host, 0));
    assert_false(al_host_match(host, "a", 0));
}

static void test_address__loopback_and_public(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool loopback, public;
    } addresses[] = {
        {"127.0.0.1", true, false},
        {"127.9.9.9", true, false},
        {"0.0.0.0", true, false},
        {"0.0.0.1", false, false},
        {"::1", true, false},
        {"::", true, false},
        {"::ffff:127.0.0.1", true, false},
        {"10.0.0.1", false, false},
        {"100.64.0.1", false, false},
        {"192.168.0.1", false, false},
        {"169.254.169.254", false, false},
        {"224.0.0.1", false, false},
        {"8.8.8.8", false, true},
        {"fd00::1", false, false},
        {"fe80::1%eth0", false, false},
        {"2001:db8::1", false, false},
        {"ff02::1", false, false},
        {"2a00:1450::1", false, true},
    };
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        struct al_address a;
        assert_true(al_address_parse(addresses[i].text, &a));
        assert_int_equal(al_address_is_loopback(&a), addresses[i].loopback);
        assert_int_equal(al_address_is_public(&a), addresses[i].public);
    }
}

static void test_address__what_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"",          "1",    "1.2.3",     "1.2.3.4.5", "1.2.3.256",
                                        "1.2.3.4%x", "[::1", "[1.2.3.4]", "::1]",      "[::1]x",
                                        ":",         "a.b",  "12345::"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct al_address a;
        assert_false(al_address_parse(texts[i], &a));
    }
}

int main(void)
{
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(test_any__nothing_in_an_empty_list),
        cmocka_unit_test(test_any__one_is_enough),
        cmocka_unit_test(test_match__a_host_of_any_length),
        cmocka_unit_test(test_address__loopback_and_public),
        cmocka_unit_test(test_address__what_is_none),
    };
    enum { ROWS = sizeof rows / sizeof rows[0], OTHERS = sizeof others / sizeof others[0] };
    struct CMUnitTest tests[ROWS + OTHERS];
    for (size_t i = 0; i < ROWS; i++) {
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = test_row, .initial_state = (void *)&rows[i]};
    }
    memcpy(tests + ROWS, others, sizeof others);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
