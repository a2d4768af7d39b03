/*
 * A collector and those around it: it has its own time, and neither its caller nor a signal for the
 * program can make it more or other than that.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/clock.h"
#include "backends/launcher/artifact_frame.h"
#include "backends/launcher/collect.h"
#include "tests/contract/raw_launcher.h"

#define COLLECT_MS (AL_COLLECT_MAX_NS / 1000000)
#define FILE_BYTES 4000000 /* more than a pipe holds */

static struct raw_launcher shared;

static int start_shared(void **state)
{
    (void)state;
    raw_start(&shared);
    return 0;
}

static int stop_shared(void **state)
{
    (void)state;
    int status = raw_stop(&shared);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* Returns once the collector has begun to write what nobody reads. */
static void start_collecting(struct al_launched *job)
{
    struct al_msg_spawn m = raw_message(raw_kind, "bash");
    m.quotas.artifact_bytes = FILE_BYTES;
    assert_int_equal(raw_run(&shared, &m, "head -c 4000000 /dev/zero >0; exit 4", job, NULL), 0);
    assert_true(raw_wait_started(job->control));
    struct pollfd pfd = {.fd = job->artifacts_fd, .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, 60000), 1);
    assert_true(pfd.revents & POLLIN);
}

static void assert_programs_own_end(const struct al_msg_exit *e)
{
    assert_true(e->ran);
    assert_int_equal(e->wait_status, 4 << 8);
    assert_int_equal(e->limit, AL_LIMIT_NONE);
    assert_false(e->killed);
    assert_string_equal(e->error, "");
}

/* Until the pipe ends or nothing comes for `ms`; how many bytes, and whether it has ended. */
static size_t drain(int fd, int ms, bool *ret_ended, struct al_artifact_frame *ret_last)
{
    static uint8_t data[1 << 16];
    size_t total = 0;
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    *ret_ended = false;
    while (!*ret_ended && poll(&pfd, 1, ms) == 1) {
        ssize_t got = read(fd, data, sizeof data);
        assert_true(got >= 0);
        *ret_ended = got == 0;
        total += (size_t)got;
        if (got >= (ssize_t)sizeof *ret_last) {
            memcpy(ret_last, data + got - sizeof *ret_last, sizeof *ret_last);
        }
    }
    return total;
}

static void test_collecting__has_its_own_time(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    start_collecting(&job);
    int64_t start_ms = al_now_ms();
    struct pollfd pfd = {.fd = job.control, .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, (int)COLLECT_MS * 8), 1);
    assert_true(raw_wait_exit(job.control, &e));
    assert_true(al_now_ms() - start_ms > COLLECT_MS - 1000);
    assert_programs_own_end(&e);
    al_launched_close(&job);
    raw_assert_works(&shared);
}

static void test_kill__ends_collecting_and_changes_nothing_else(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    uint8_t data[8];
    start_collecting(&job);
    int64_t start_ms = al_now_ms();
    size_t n = al_msg_encode_empty(AL_MSG_KILL, data);
    assert_int_equal(send(job.control, data, n, 0), n);
    assert_true(raw_wait_exit(job.control, &e));
    assert_true(al_now_ms() - start_ms < COLLECT_MS - 1000);
    assert_programs_own_end(&e);
    al_launched_close(&job);
}

static void test_control_closed__ends_collecting(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_artifact_frame last;
    bool ended;
    start_collecting(&job);
    int64_t start_ms = al_now_ms();
    close(job.control);
    job.control = -1;
    usleep(200000);
    assert_true(drain(job.artifacts_fd, 10000, &ended, &last) < FILE_BYTES);
    assert_true(ended);
    assert_true(al_now_ms() - start_ms < COLLECT_MS - 1000);
    al_launched_close(&job);
    raw_assert_works(&shared);
}

/* They were for the program. */
static void test_signals__do_not_reach_the_collector(void **state)
{
    (void)state;
    struct al_launched job;
    struct al_msg_exit e;
    struct al_artifact_frame last = {.type = 0};
    uint8_t data[8];
    bool ended;
    start_collecting(&job);
    const int signals[] = {SIGKILL, SIGTERM, SIGSTOP, SIGINT};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        const struct al_msg_signal m = {.signo = signals[i]};
        size_t n = al_msg_encode_signal(&m, data);
        assert_int_equal(send(job.control, data, n, 0), n);
    }
    usleep(100000);
    assert_true(drain(job.artifacts_fd, 10000, &ended, &last) > FILE_BYTES);
    assert_true(ended);
    assert_int_equal(last.type, AL_ARTIFACT_FRAME_END);
    assert_true(raw_wait_exit(job.control, &e));
    assert_programs_own_end(&e);
    al_launched_close(&job);
}

int main(int argc, char **argv)
{
    raw_choose_kind(argc, argv);
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collecting__has_its_own_time),
        cmocka_unit_test(test_kill__ends_collecting_and_changes_nothing_else),
        cmocka_unit_test(test_control_closed__ends_collecting),
        cmocka_unit_test(test_signals__do_not_reach_the_collector),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests_name("collect", tests, start_shared, stop_shared);
}
