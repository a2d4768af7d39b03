/* A process that puts records all the time is killed; nothing that had its time may be lost. */
#include "service/records/records.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "tests/unit/service/records/records_support.h"

#define ROUNDS   8
#define JOBS_MAX 200000

/* Twice what is promised on an idle machine. */
#define COMMITTED_AFTER_MS 200

/* Shared with the child, which outlives it here. */
struct diary {
    atomic_int_fast64_t running_ms[JOBS_MAX]; /* when the job with this id was put, 0: not yet */
    atomic_int_fast64_t ended_ms[JOBS_MAX];
    atomic_uint_fast32_t next;
};

/* Every tenth job never ends. */
static void put_for_ever(const char *dir, struct diary *diary)
{
    struct al_records *records;
    struct al_err err = {0};
    if (al_records_open(dir, &al_test_limits, &records, &err) < 0) {
        _exit(1);
    }
    for (uint64_t id = diary->next + 1; id < JOBS_MAX; id++) {
        struct al_test_record job = {.tenant = "t",
                                     .id = id,
                                     .status = AL_STATUS_RUNNING,
                                     .version = (uint32_t)id,
                                     .pad_bytes = (uint32_t)(id * 7 % 3000)};
        al_test_put(records, &job);
        diary->running_ms[id] = al_now_ms();
        diary->next = (uint32_t)id;
        job.status = AL_STATUS_SUCCEEDED;
        if (id % 10 != 0) {
            al_test_put(records, &job);
            diary->ended_ms[id] = al_now_ms();
        }
        if (id % 4 == 0) {
            usleep(800);
        }
    }
    _exit(2);
}

static void check_jobs(struct al_records *records, const struct diary *diary, uint64_t first,
                       int64_t killed_ms)
{
    int64_t sure_ms = killed_ms - COMMITTED_AFTER_MS;
    for (uint64_t id = first; id <= diary->next; id++) {
        struct al_test_seen seen;
        int r = al_test_get(records, "t", id, &seen);
        if (r == -ENOENT) {
            assert_true(diary->running_ms[id] >= sure_ms);
            continue;
        }
        assert_int_equal(r, 0);
        assert_int_equal(seen.version, id);
        bool ended = diary->ended_ms[id] != 0;
        if (ended && diary->ended_ms[id] < sure_ms) {
            assert_int_equal(seen.status, AL_STATUS_SUCCEEDED);
        }
        assert_true(seen.status == AL_STATUS_SUCCEEDED || seen.interrupted);
    }
}

static void run_round(const char *dir, struct diary *diary, uint64_t *random)
{
    struct al_records_stats stats;
    uint64_t first = diary->next + 1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        put_for_ever(dir, diary);
    }
    usleep(150000 + al_test_random(random, 500000));
    int64_t killed_ms = al_now_ms();
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));

    struct al_records *records = al_test_records_open(dir, &al_test_limits);
    assert_true(diary->next >= first);
    check_jobs(records, diary, first, killed_ms);
    al_records_stats(records, &stats);
    assert_true(stats.working);
    assert_int_equal(stats.corrupt, 0);
    assert_string_equal(stats.set_aside, "");
    al_records_close(records);
}

static void test_records__survive_kill_9(void **state)
{
    (void)state;
    char dir[128];
    uint64_t random = 99;
    struct diary *diary =
        mmap(NULL, sizeof *diary, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(diary, MAP_FAILED);
    al_test_dir_make_quick(dir);
    for (int i = 0; i < ROUNDS; i++) {
        run_round(dir, diary, &random);
    }
    assert_true(diary->next > 100);
    assert_int_equal(al_test_count_files(dir, "data.mdb"), 1);
    al_test_dir_remove(dir);
    munmap(diary, sizeof *diary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records__survive_kill_9)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
