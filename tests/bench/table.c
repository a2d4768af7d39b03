#include "tests/bench/table.h"

#include <stdio.h>

#define NAME_WIDTH 34

static const char *format_time(char *text, size_t size, int64_t ns)
{
    if (ns < 1000000) {
        snprintf(text, size, "%.0f us", (double)ns / 1e3);
    } else {
        snprintf(text, size, "%.2f ms", (double)ns / 1e6);
    }
    return text;
}

static void print_row(const struct al_contestant *who, unsigned threads, const char *ratio,
                      const char *rate)
{
    char p50[32], p99[32];
    printf("%-*s %5u %6zu %10s %10s %8s  %s\n", NAME_WIDTH, who->name, threads,
           atomic_load(&who->n), format_time(p50, sizeof p50, al_contestant_percentile(who, 0.5)),
           format_time(p99, sizeof p99, al_contestant_percentile(who, 0.99)), ratio, rate);
    fflush(stdout);
}

void al_table_heading(void)
{
    printf("%-*s %5s %6s %10s %10s %8s  %s\n", NAME_WIDTH,
           "measured, turn about with its yardstick", "conc", "n", "p50", "p99", "ratio", "rate");
}

void al_table_row(const struct al_contestant *who, unsigned threads,
                  const struct al_contestant *base)
{
    char ratio[32] = "", rate[32];
    if (base) {
        snprintf(ratio, sizeof ratio, "%.2f",
                 (double)al_contestant_percentile(who, 0.5) /
                     (double)al_contestant_percentile(base, 0.5));
    }
    snprintf(rate, sizeof rate, "%.0f/s", al_contestant_per_second(who));
    print_row(who, threads, ratio, rate);
}

static double throughput(const struct al_contestant *who, size_t bytes)
{
    return (double)bytes * 1e3 / (double)al_contestant_percentile(who, 0.5);
}

void al_table_row_bytes(const struct al_contestant *who, size_t bytes,
                        const struct al_contestant *base)
{
    char ratio[32] = "", rate[32];
    if (base) {
        snprintf(ratio, sizeof ratio, "%.2f", throughput(who, bytes) / throughput(base, bytes));
    }
    snprintf(rate, sizeof rate, "%.0f MB/s", throughput(who, bytes));
    print_row(who, 1, ratio, rate);
}

bool al_table_aims(const struct al_aim *aims, size_t n)
{
    bool met = true;
    for (size_t i = 0; i < n; i++) {
        const struct al_aim *aim = &aims[i];
        if (aim->ratio <= 0) {
            continue;
        }
        bool pass = aim->at_least ? aim->ratio >= aim->limit : aim->ratio <= aim->limit;
        printf("%s  %s: %.2f, wanted at %s %.2f\n", pass ? "PASS" : "FAIL", aim->text, aim->ratio,
               aim->at_least ? "least" : "most", aim->limit);
        met = met && pass;
    }
    return met;
}
