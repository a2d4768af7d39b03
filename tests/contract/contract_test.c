/*
 * One suite for every backend: the same request means the same. Each row names the backends that it
 * holds for; a row that a backend cannot show (echo runs nothing) leaves that backend out, for that
 * reason only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/runner.h"

#define KEEP (-1)

struct row {
    const char *name;
    unsigned backends; /* enum al_test_backend bits */
    const char *language;
    const char *code;
    void (*change)(struct al_job_spec *spec); /* may be NULL */
    struct al_test_caller caller;
    enum al_status status;
    enum al_reason reason;
    enum al_limit limit;
    enum al_exit_kind exit_kind;
    int exit_value;
    int within_ms;       /* the run must have returned by then; 0: not looked at */
    const char *out;     /* exact stdout; NULL: not looked at */
    const char *err;     /* exact stderr; NULL: not looked at */
    const char *out_has; /* part of stdout */
    const char *err_has; /* part of stderr */
    void (*check)(const struct al_test_run *run); /* may be NULL */
};

#define SUCCEEDS .status = AL_STATUS_SUCCEEDED, .reason = AL_REASON_EXIT, .exit_kind = AL_EXIT_CODE
#define EXITS(n) \
    .status = AL_STATUS_FAILED, .reason = AL_REASON_EXIT, .exit_kind = AL_EXIT_CODE, .exit_value = n
#define DIES_OF(sig)                                                                     \
    .status = AL_STATUS_FAILED, .reason = AL_REASON_SIGNAL, .exit_kind = AL_EXIT_SIGNAL, \
    .exit_value = sig
#define MEETS(s, l) .status = (s), .reason = AL_REASON_LIMIT, .limit = (l), .exit_value = KEEP
#define IS_KILLED   .status = AL_STATUS_KILLED, .reason = AL_REASON_CANCELLED, .exit_value = KEEP

static void wall_2s(struct al_job_spec *s)
{
    s->quotas.wall_ms = 2000;
}

static void wall_500ms(struct al_job_spec *s)
{
    s->quotas.wall_ms = al_test_is_slow() ? 3000 : 500;
}

static void cpu_500ms(struct al_job_spec *s)
{
    s->quotas.cpu_ms = al_test_is_slow() ? 2000 : 500;
}

static void memory_64(struct al_job_spec *s)
{
    s->quotas.memory_mb = 64;
}

static void pids_8(struct al_job_spec *s)
{
    s->quotas.pids = 8;
}

static void disk_8(struct al_job_spec *s)
{
    s->quotas.disk_mb = 8;
}

static void file_size_1(struct al_job_spec *s)
{
    s->quotas.file_size_mb = 1;
}

static void cpu_500ms_wall_2s(struct al_job_spec *s)
{
    s->quotas.cpu_ms = al_test_is_slow() ? 2000 : 500;
    s->quotas.wall_ms = 2000;
}

static void stdin_4m_output_16m(struct al_job_spec *s)
{
    static uint8_t zeros[4 << 20];
    s->stdin_bytes = (struct al_bytes){zeros, sizeof zeros};
    s->quotas.output_bytes = 16 << 20;
}

static void output_10(struct al_job_spec *s)
{
    s->quotas.output_bytes = 10;
}

static void output_1000(struct al_job_spec *s)
{
    s->quotas.output_bytes = 1000;
}

static void output_16m(struct al_job_spec *s)
{
    s->quotas.output_bytes = 16 << 20;
}

static void stdin_text(struct al_job_spec *s)
{
    s->stdin_bytes = (struct al_bytes){(const uint8_t *)"one\ntwo\n", 8};
}

static void stdin_4m(struct al_job_spec *s)
{
    static uint8_t zeros[4 << 20];
    s->stdin_bytes = (struct al_bytes){zeros, sizeof zeros};
}

static void stdin_stays_open(struct al_job_spec *s)
{
    s->stdin_open = true;
}

static void terminal(struct al_job_spec *s)
{
    s->terminal = (struct al_terminal_size){.rows = 30, .cols = 100};
    s->stdin_open = true;
}

static void terminal_output_16m(struct al_job_spec *s)
{
    terminal(s);
    s->quotas.output_bytes = 16 << 20;
}

static void terminal_of_a_dumb_kind(struct al_job_spec *s)
{
    static const struct al_env env[] = {{"TERM", "dumb"}};
    terminal(s);
    s->env = env;
    s->n_env = 1;
}

static void with_args(struct al_job_spec *s)
{
    static const char *const args[] = {"a b", "", "ü", "--version"};
    s->args = args;
    s->n_args = 4;
}

static void with_env(struct al_job_spec *s)
{
    static const struct al_env env[] = {{"GREETING", "hello\nworld"},
                                        {"HOME", "/tmp"},
                                        {"LD_PRELOAD", "/nonexistent.so"},
                                        {"AIRLOCK_SECRET", "x"}};
    s->env = env;
    s->n_env = 4;
}

static void with_inputs(struct al_job_spec *s)
{
    s->inputs_json = "{\"a\":[1,2]}";
}

static void with_files(struct al_job_spec *s)
{
    static const struct al_file files[] = {
        {"helper.py", {(const uint8_t *)"def f():\n    return 42\n", 23}, 0644},
        {"a/b/data.bin", {(const uint8_t *)"\0\xff\n", 3}, 0600},
        {"tool.sh", {(const uint8_t *)"#!/bin/sh\necho tool\n", 20}, 0777},
        {"helper.ts", {(const uint8_t *)"export const n: number = 7;\n", 28}, 0644},
    };
    s->files = files;
    s->n_files = 4;
}

static void workdir_below(struct al_job_spec *s)
{
    s->workdir = "/sandbox/deep/er";
}

static void workdir_tmp(struct al_job_spec *s)
{
    s->workdir = "/tmp";
}

static void code_with_nul(struct al_job_spec *s)
{
    s->code = (struct al_bytes){(const uint8_t *)"echo a\n\0echo b\n", 15};
}

static void no_code(struct al_job_spec *s)
{
    s->code = (struct al_bytes){0};
}

static void check_cut_at_1000(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 1000);
    assert_true(run->result.stdout_truncated);
    assert_false(run->result.stderr_truncated);
    assert_memory_equal(run->out[AL_STDOUT].data, "1234567890\n1234567890\n", 22);
}

static void check_stderr_cut_at_1000(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDERR].len, 1000);
    assert_true(run->result.stderr_truncated);
    assert_false(run->result.stdout_truncated);
}

static void check_4m(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 4 << 20);
}

static void check_all_bytes(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 256);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(run->out[AL_STDOUT].data[i], i);
    }
}

static void check_256k_on_stderr(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDERR].len, 262144);
}

static void check_cut(const struct al_test_run *run)
{
    assert_true(run->result.stdout_truncated);
}

static void check_cpu_about_500ms(const struct al_test_run *run)
{
    if (al_test_is_slow()) {
        assert_in_range(run->result.cpu_us, 1920000, 4000000); /* it asked for 2 s */
    } else {
        assert_in_range(run->result.cpu_us, 480000, 600000);
    }
}

static void check_memory_about_64(const struct al_test_run *run)
{
    assert_in_range(run->result.memory_peak_bytes, 60 << 20, 64 << 20);
}

static void check_256k_each(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 262144);
    assert_int_equal(run->out[AL_STDERR].len, 262144);
}

static void check_8m(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 8 << 20);
}

static void check_bytes(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 7);
    assert_memory_equal(run->out[AL_STDOUT].data, "\xff\0\xe3\x81\x82\xed\xa0", 7);
}

static void check_compile_failed(const struct al_test_run *run)
{
    assert_true(run->result.compile.present);
    assert_int_not_equal(run->result.compile.exit_code, 0);
    assert_non_null(
        memmem(run->result.compile.output.data, run->result.compile.output.len, "main.ts", 7));
    assert_int_equal(run->result.exit_kind, AL_EXIT_NONE);
}

static void check_compiled(const struct al_test_run *run)
{
    assert_true(run->result.compile.present);
    assert_int_equal(run->result.compile.exit_code, 0);
    assert_true(run->result.compile.duration_us > 0);
}

/* What "@NAP@" in a row's code becomes: seconds to sleep that no other run of this suite has. */
static const char *nap(void)
{
    static char text[32];
    snprintf(text, sizeof text, "7391.%d", (int)getpid());
    return text;
}

static char *with_nap(const char *code)
{
    char *copy = calloc(1, strlen(code) * 4 + 1);
    assert_non_null(copy);
    char *to = copy;
    for (const char *at; (at = strstr(code, "@NAP@")) != NULL; code = at + strlen("@NAP@")) {
        to = mempcpy(to, code, (size_t)(at - code));
        to = stpcpy(to, nap());
    }
    stpcpy(to, code);
    return copy;
}

static void check_nothing_left(const struct al_test_run *run)
{
    (void)run;
    assert_int_equal(al_test_count_processes(nap()), 0);
}

static void check_figures(const struct al_test_run *run)
{
    assert_true(run->result.cpu_us > 0);
    assert_true(run->result.duration_us > 0);
    assert_true(run->result.memory_peak_bytes > 1 << 20);
    assert_true(run->result.isolation != 0);
    assert_int_equal(run->started, 1);
}

/* clone(CLONE_PARENT | SIGCHLD): a sibling, which ends at once. */
#define CHILD_FOR_ITS_PARENT                                                  \
    "import ctypes, os\nnr = 56 if os.uname().machine == 'x86_64' else 220\n" \
    "pid = ctypes.CDLL(None).syscall(nr, 0x8000 | 17, 0, 0, 0, 0)\nif pid == 0: os._exit(0)\n"

/* Datagrams that nobody reads, 200 MB of them if it may. */
#define FILL_SOCKETS                                                                         \
    "import socket\nkeep = []\nfor i in range(50):\n"                                        \
    " s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))\n"      \
    " s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20); keep.append(s)\n"          \
    " try:\n  for j in range(64): keep[0].sendto(b'x' * 60000, s.getsockname())\n"           \
    " except OSError: pass\n"                                                                \
    "used = [l.split() for l in open('/proc/net/sockstat') if l.startswith('UDP:')][0][4]\n" \
    "print(int(used) * 4096 < 32 << 20)"

static const struct row rows[] = {
    /* what is printed comes back */
    {"python_prints", AL_TEST_CELLS, "python", "print(1)", SUCCEEDS, .out = "1\n", .err = "",
     .check = check_figures},
    {"javascript_prints", AL_TEST_CELLS, "javascript", "console.log(1)", SUCCEEDS, .out = "1\n"},
    {"typescript_prints", AL_TEST_CELLS, "typescript", "const n: number = 1; console.log(n)",
     SUCCEEDS, .out = "1\n", .check = check_compiled},
    {"bash_prints", AL_TEST_CELLS, "bash", "echo 1", SUCCEEDS, .out = "1\n"},
    {"echo_returns_the_code", AL_TEST_ECHO, "python", "print(1)", SUCCEEDS, .out = "print(1)"},
    {"alias_and_version", AL_TEST_CELLS, "python3@3", "print(1)", SUCCEEDS, .out = "1\n"},
    {"out_and_err_are_separate", AL_TEST_CELLS, "bash", "printf out; printf err >&2; exit 7",
     EXITS(7), .out = "out", .err = "err"},
    {"kept_when_cut_by_time", AL_TEST_CELLS, "bash", "printf out; printf err >&2; sleep 30",
     wall_500ms, MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .out = "out", .err = "err",
     .within_ms = 1500},
    {"bytes_untouched", AL_TEST_CELLS, "bash", "printf '\\xff\\0\\xe3\\x81\\x82\\xed\\xa0'",
     SUCCEEDS, .check = check_bytes},
    {"both_channels_flood", AL_TEST_CELLS, "python",
     "import os\nfor i in range(64):\n os.write(1,b'o'*4096); os.write(2,b'e'*4096)", SUCCEEDS,
     .check = check_256k_each},
    {"stderr_floods_before_stdout_is_used", AL_TEST_CELLS, "python",
     "import os\nfor i in range(64): os.write(2,b'e'*4096)\nprint('done')", SUCCEEDS,
     .out = "done\n", .check = check_256k_on_stderr},
    {"character_in_two_writes", AL_TEST_CELLS, "bash",
     "printf '\\xe3'; sleep 0.05; printf '\\x81\\x82'", SUCCEEDS, .out = "\xe3\x81\x82"},
    {"echo_waits_for_a_slow_reader", AL_TEST_ECHO, "python", "1234567890",
     .caller = {.sink_room = 3, .room_after_ms = 50}, SUCCEEDS, .out = "1234567890"},
    {"large_output", AL_TEST_CELLS, "bash", "head -c 8388608 /dev/zero", output_16m, SUCCEEDS,
     .check = check_8m},
    {"dev_stdout_opens", AL_TEST_CELLS, "bash", "echo a > /dev/stdout; echo b > /dev/stderr",
     SUCCEEDS, .out = "a\n", .err = "b\n"},
    {"nul_in_code", AL_TEST_NATIVE, "bash", "", code_with_nul, SUCCEEDS, .out_has = "a\n"},
    {"no_code_at_all", AL_TEST_CELLS, "python", "", no_code, SUCCEEDS, .out = ""},
    {"no_newline_at_the_end_and_crlf", AL_TEST_CELLS, "python", "print(1)\r\nprint(2)", SUCCEEDS,
     .out = "1\n2\n"},
    {"byte_order_mark", AL_TEST_CELLS, "python", "\xef\xbb\xbfprint(1)", SUCCEEDS, .out = "1\n"},

    /* how it ends */
    {"exit_code", AL_TEST_CELLS, "python", "import sys; sys.exit(3)", EXITS(3)},
    {"exception", AL_TEST_CELLS, "python", "1/0", EXITS(1), .err_has = "ZeroDivisionError"},
    {"node_exit_code", AL_TEST_CELLS, "javascript", "process.exit(9)", EXITS(9)},
    {"signal_is_a_signal", AL_TEST_CELLS, "bash", "kill -SEGV $$", DIES_OF(11)},
    {"killed_itself", AL_TEST_CELLS, "python", "import os; os.kill(os.getpid(), 9)", DIES_OF(9)},
    {"shell_exit_137_is_an_exit_code", AL_TEST_CELLS, "bash", "exit 137", EXITS(137)},
    {"compile_error", AL_TEST_CELLS, "typescript", "const n: = ;", .status = AL_STATUS_FAILED,
     .reason = AL_REASON_COMPILE, .out = "", .check = check_compile_failed},
    {"typescript_throws", AL_TEST_CELLS, "typescript", "throw new Error('boom')", EXITS(1),
     .err_has = "boom", .check = check_compiled},
    {"background_child_dies_and_does_not_delay", AL_TEST_CELLS, "bash",
     "sleep @NAP@ & echo done; exit 0", SUCCEEDS, .out = "done\n", .within_ms = 2000,
     .check = check_nothing_left},
    {"setsid_grandchild_dies", AL_TEST_CELLS, "bash",
     "setsid setsid sleep @NAP@ & sleep 0.1; exit 0", SUCCEEDS, .within_ms = 3000,
     .check = check_nothing_left},
    {"ignored_signals_do_not_help", AL_TEST_CELLS, "bash",
     "trap '' TERM INT HUP; while :; do sleep @NAP@; done", wall_500ms,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 2000, .check = check_nothing_left},

    {"terminated_by_a_signal_of_the_caller", AL_TEST_CELLS, "bash", "echo a; exec sleep @NAP@",
     .caller = {.signal_on_output = 15}, DIES_OF(15), .within_ms = 2000,
     .check = check_nothing_left},

    /* limits */
    {"wall_before_cpu", AL_TEST_CELLS, "python", "while True: pass", wall_500ms,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 1500},
    {"sleep_under_a_cpu_limit_meets_wall", AL_TEST_CELLS, "bash", "sleep @NAP@", cpu_500ms_wall_2s,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 2700},
    {"node_lives_in_64_mb", AL_TEST_CELLS, "javascript", "console.log(1)", memory_64, SUCCEEDS,
     .out = "1\n"},
    {"python_fork_loop", AL_TEST_CELLS, "python",
     "import os\nwhile True:\n try: os.fork()\n except OSError: pass", wall_2s,
     .status = AL_STATUS_TIMEOUT, .reason = AL_REASON_LIMIT, .limit = AL_LIMIT_WALL,
     .exit_value = KEEP, .within_ms = 6000},
    {"threads_count_as_pids", AL_TEST_CELLS, "python",
     "import threading, time\nfor i in range(20): threading.Thread(target=time.sleep, args=(9,), "
     "daemon=True).start()",
     pids_8, MEETS(AL_STATUS_FAILED, AL_LIMIT_PIDS), .within_ms = 5000},
    {"nested_sleep_meets_wall", AL_TEST_CELLS, "bash", "sh -c 'sh -c \"sleep @NAP@\"'", wall_2s,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 2700, .check = check_nothing_left},
    {"spin_meets_cpu", AL_TEST_CELLS, "python", "while True: pass", cpu_500ms,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_CPU), .within_ms = 5000, .check = check_cpu_about_500ms},
    {"many_processes_share_the_cpu_limit", AL_TEST_CELLS, "bash",
     "for i in 1 2 3 4; do (while :; do :; done) & done; wait", cpu_500ms,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_CPU), .check = check_cpu_about_500ms},
    {"sleep_is_not_cpu", AL_TEST_CELLS, "bash", "sleep 0.8", cpu_500ms, SUCCEEDS},
    {"memory_is_met", AL_TEST_CELLS, "python", "b = bytearray(200 << 20)", memory_64,
     MEETS(AL_STATUS_FAILED, AL_LIMIT_MEMORY), .check = check_memory_about_64},
    {"childs_memory_is_met", AL_TEST_CELLS, "bash",
     "python3 -c 'b = bytearray(200 << 20)'; echo still here; exit 0", memory_64,
     MEETS(AL_STATUS_FAILED, AL_LIMIT_MEMORY), .out_has = "still here"},
    {"memory_below_the_limit", AL_TEST_CELLS, "python", "b = bytearray(40 << 20); print(len(b))",
     memory_64, SUCCEEDS, .out = "41943040\n"},
    {"tmpfs_counts_as_memory", AL_TEST_CELLS, "bash",
     "head -c 25000000 /dev/zero > a; head -c 25000000 /dev/zero > b; python3 -c 'b = bytearray(20 "
     "<< 20)'",
     memory_64, MEETS(AL_STATUS_FAILED, AL_LIMIT_MEMORY)},
    {"forks_meet_pids", AL_TEST_CELLS, "python",
     "import os,time\nfor i in range(50):\n if os.fork() == 0: time.sleep(30)", pids_8,
     MEETS(AL_STATUS_FAILED, AL_LIMIT_PIDS), .within_ms = 5000},
    {"fork_bomb", AL_TEST_CELLS, "bash", "f() { f | f & }; f; sleep @NAP@", wall_2s,
     .status = AL_STATUS_TIMEOUT, .reason = AL_REASON_LIMIT, .limit = AL_LIMIT_WALL,
     .exit_value = KEEP, .within_ms = 6000, .check = check_nothing_left},
    {"output_is_cut", AL_TEST_CELLS, "python", "while True: print('1234567890')", output_1000,
     MEETS(AL_STATUS_FAILED, AL_LIMIT_OUTPUT), .within_ms = 3000, .check = check_cut_at_1000},
    {"output_at_the_limit_is_fine", AL_TEST_CELLS, "bash", "head -c 1000 /dev/zero", output_1000,
     SUCCEEDS},
    {"stderr_is_cut", AL_TEST_CELLS, "python",
     "import sys\nwhile True: print('1234567890', file=sys.stderr)", output_1000,
     MEETS(AL_STATUS_FAILED, AL_LIMIT_OUTPUT), .within_ms = 3000,
     .check = check_stderr_cut_at_1000},
    {"echo_output_is_cut", AL_TEST_ECHO, "python", "1234567890\n1234567890\n", output_10,
     MEETS(AL_STATUS_FAILED, AL_LIMIT_OUTPUT), .out = "1234567890", .check = check_cut},
    {"echo_output_below_the_limit", AL_TEST_ECHO, "python", "1234567890\n", output_1000, SUCCEEDS,
     .out = "1234567890\n"},
    {"disk_is_full", AL_TEST_CELLS, "bash", "head -c 20000000 /dev/zero > $TMPDIR/x", disk_8,
     EXITS(1), .err_has = "No space left"},
    {"workdir_and_tmp_share_the_disk", AL_TEST_CELLS, "bash",
     "head -c 6000000 /dev/zero > x && head -c 6000000 /dev/zero > $TMPDIR/y", disk_8, EXITS(1),
     .err_has = "No space left"},
    {"shared_memory_is_of_the_disk", AL_TEST_NATIVE, "bash",
     "head -c 20000000 /dev/zero > /dev/shm/x", disk_8, EXITS(1), .err_has = "No space left"},
    {"number_of_files", AL_TEST_CELLS, "python",
     "try:\n for i in range(20000): open(f'x{i}', 'w').close()\nexcept OSError as e: "
     "print(e.errno)",
     disk_8, SUCCEEDS, .out = "28\n"},
    {"nothing_of_earlier_jobs", AL_TEST_CELLS, "bash", "ls -A $TMPDIR; ls -A", SUCCEEDS,
     .out = "main.sh\n"},
    {"file_size", AL_TEST_CELLS, "python",
     "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
     "f = open('x', 'wb')\ntry:\n f.write(b'x' * (2 << 20)); f.flush()\nexcept OSError as e: "
     "print(e.errno, flush=True)\n"
     "import os; os._exit(0)",
     file_size_1, SUCCEEDS, .out = "27\n"},
    {"open_files", AL_TEST_CELLS, "python",
     "a = []\ntry:\n while True: a.append(open('/dev/null'))\nexcept OSError as e: print(e.errno)",
     SUCCEEDS, .out = "24\n"},

    /* stdin */
    {"stdin_is_empty", AL_TEST_CELLS, "bash", "cat; echo end", SUCCEEDS, .out = "end\n",
     .within_ms = 3000},
    {"stdin_bytes", AL_TEST_CELLS, "bash", "cat", stdin_text, SUCCEEDS, .out = "one\ntwo\n"},
    {"stdin_not_read", AL_TEST_CELLS, "bash", "echo ok", stdin_4m, SUCCEEDS, .out = "ok\n"},
    {"stdin_closed_by_the_program", AL_TEST_CELLS, "bash", "exec <&-; sleep 0.2; echo ok", stdin_4m,
     SUCCEEDS, .out = "ok\n"},
    {"stdin_all_read", AL_TEST_CELLS, "bash", "wc -c", stdin_4m, SUCCEEDS, .out = "4194304\n"},
    {"stdin_through_ctl", AL_TEST_CELLS, "bash", "cat", stdin_stays_open,
     .caller = {.stdin_text = "later\n", .stdin_eof = true}, SUCCEEDS, .out = "later\n"},

    {"stdin_comes_back", AL_TEST_CELLS, "bash", "cat", stdin_4m_output_16m, SUCCEEDS,
     .check = check_4m},
    {"stdin_through_ctl_not_read", AL_TEST_CELLS, "bash", "sleep 0.1; echo ok", stdin_stays_open,
     .caller = {.stdin_text = "unread\n"}, SUCCEEDS, .out = "ok\n"},
    {"stdin_through_ctl_to_a_closed_one", AL_TEST_CELLS, "bash", "exec <&-; sleep 0.1; echo ok",
     stdin_stays_open, .caller = {.stdin_text = "unread\n", .stdin_eof = true}, SUCCEEDS,
     .out = "ok\n"},

    /* terminals */
    {"terminal_on_all_three", AL_TEST_CELLS, "bash",
     "for fd in 0 1 2; do test -t $fd && echo yes; done; tty", terminal, SUCCEEDS,
     .out_has = "yes\r\nyes\r\nyes\r\n/dev/pts/"},
    {"terminal_has_its_size", AL_TEST_CELLS, "bash", "stty size; echo $TERM", terminal, SUCCEEDS,
     .out = "30 100\r\nxterm-256color\r\n"},
    {"terminal_of_the_requests_kind", AL_TEST_CELLS, "bash", "echo $TERM", terminal_of_a_dumb_kind,
     SUCCEEDS, .out = "dumb\r\n"},
    {"terminal_carries_stderr_too", AL_TEST_CELLS, "bash", "echo a; echo b >&2", terminal, SUCCEEDS,
     .out = "a\r\nb\r\n"},
    {"terminal_is_the_controlling_one", AL_TEST_CELLS, "bash", "echo here > /dev/tty", terminal,
     SUCCEEDS, .out = "here\r\n"},
    {"terminal_resize", AL_TEST_CELLS, "bash",
     "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done", terminal,
     .caller = {.size_on_output = {41, 73}}, EXITS(3), .out = "ready\r\n41 73\r\n"},
    {"terminal_interrupt", AL_TEST_CELLS, "python",
     "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(@NAP@)\n"
     "except KeyboardInterrupt:\n    print('got')",
     terminal, .caller = {.stdin_text = "\003", .stdin_on_output = true}, SUCCEEDS,
     .out = "ready\r\n^Cgot\r\n", .within_ms = 3000},
    {"terminal_quit", AL_TEST_CELLS, "python",
     "import time\nprint('ready', flush=True)\ntime.sleep(@NAP@)", terminal,
     .caller = {.stdin_text = "\034", .stdin_on_output = true}, DIES_OF(3), .out = "ready\r\n^\\",
     .within_ms = 3000},
    {"terminal_end_of_input", AL_TEST_CELLS, "bash", "stty -echo; cat; echo end", terminal,
     .caller = {.stdin_text = "one\n", .stdin_eof = true}, SUCCEEDS, .out_has = "one\r\nend\r\n",
     .within_ms = 3000},
    {"terminal_raw_is_8_bit_clean", AL_TEST_CELLS, "python",
     "import os, tty\ntty.setraw(0)\nos.write(1, bytes(range(256)))", terminal, SUCCEEDS,
     .check = check_all_bytes},
    {"terminal_much_output", AL_TEST_CELLS, "python",
     "import os, tty\ntty.setraw(1)\nn = 4 << 20\nwhile n: n -= os.write(1, bytes(min(n, 65536)))",
     terminal_output_16m, SUCCEEDS, .check = check_4m},
    {"terminal_closed_by_the_program", AL_TEST_CELLS, "bash",
     "exec <&- >&- 2>&-; sleep 0.1; exit 4", terminal, EXITS(4)},
    {"terminal_job_killed", AL_TEST_CELLS, "bash", "echo ready; sleep @NAP@", terminal,
     .caller = {.cancel_on_output = true}, IS_KILLED, .within_ms = 1500},
    {"terminal_and_a_compile_step", AL_TEST_CELLS, "typescript",
     "process.stdout.write(`${process.stdout.isTTY} ${process.stdout.columns}`)", terminal,
     SUCCEEDS, .out = "true 100"},

    /* control */
    {"cancel_at_once", AL_TEST_CELLS, "python", "import time; time.sleep(@NAP@)",
     .caller = {.cancel_after_ms = 1}, IS_KILLED, .within_ms = 1500},
    {"cancel_in_mid_flood", AL_TEST_CELLS, "bash", "cat /dev/zero", output_16m,
     .caller = {.cancel_on_output = true}, IS_KILLED, .within_ms = 2000},
    {"echo_cancel", AL_TEST_ECHO, "python", "1234567890",
     .caller = {.sink_room = 3, .cancel_after_ms = 20}, IS_KILLED, .out = "123", .within_ms = 1000},
    {"cancel", AL_TEST_CELLS, "bash", "echo a; sleep @NAP@", .caller = {.cancel_on_output = true},
     IS_KILLED, .out = "a\n", .within_ms = 2000, .check = check_nothing_left},
    {"cancel_kills_the_tree", AL_TEST_CELLS, "bash",
     "setsid sleep @NAP@ & sleep @NAP@ & echo a; wait", .caller = {.cancel_on_output = true},
     IS_KILLED, .within_ms = 2000, .check = check_nothing_left},
    {"signal_reaches_the_program", AL_TEST_CELLS, "bash",
     "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done",
     .caller = {.signal_on_output = 10}, EXITS(5), .out = "ready\ngot\n"},
    {"slow_reader_stops_the_program", AL_TEST_CELLS, "bash",
     "head -c 4000000 /dev/zero; echo end >&2", output_16m,
     .caller = {.sink_room = 1000, .room_after_ms = 300}, SUCCEEDS, .err = "end\n"},
    {"a_reader_that_stays_away_loses_the_rest", AL_TEST_CELLS, "bash", "cat /dev/zero", wall_500ms,
     .caller = {.sink_room = 1000}, MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 9000,
     .check = check_cut},
    {"echo_meets_wall_without_a_reader", AL_TEST_ECHO, "python", "1234567890", wall_500ms,
     .caller = {.sink_room = 3}, MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .out = "123",
     .within_ms = 2000},
    {"cancel_does_not_wait_for_a_reader", AL_TEST_CELLS, "bash", "cat /dev/zero", output_16m,
     .caller = {.sink_room = 1000, .cancel_after_ms = 100}, IS_KILLED, .within_ms = 2000},

    /* surroundings */
    {"args", AL_TEST_CELLS, "python", "import sys; print(sys.argv[1:])", with_args, SUCCEEDS,
     .out = "['a b', '', 'ü', '--version']\n"},
    {"env_is_clean", AL_TEST_NATIVE, "bash", "env -u _ -u PWD -u SHLVL | sort", SUCCEEDS,
     .out =
         "HOME=/sandbox\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\nTMPDIR=/tmp\nTZ=UTC\n"},
    {"env_of_the_request", AL_TEST_NATIVE, "python",
     "import os; print(repr(os.environ['GREETING']), os.environ['HOME'], "
     "os.environ['AIRLOCK_SECRET'])",
     with_env, SUCCEEDS, .out = "'hello\\nworld' /tmp x\n"},
    {"inputs", AL_TEST_CELLS, "python",
     "import os; print(open(os.environ['AIRLOCK_INPUTS']).read())", with_inputs, SUCCEEDS,
     .out = "{\"a\":[1,2]}\n"},
    {"no_inputs_no_variable", AL_TEST_CELLS, "bash", "echo ${AIRLOCK_INPUTS-none}", SUCCEEDS,
     .out = "none\n"},
    {"files", AL_TEST_CELLS, "python",
     "import helper, os, subprocess\nprint(helper.f(), open('a/b/data.bin','rb').read(), "
     "oct(os.stat('a/b/data.bin').st_mode & 0o777))\nprint(subprocess.run(['./tool.sh'], "
     "capture_output=True, text=True).stdout)",
     with_files, SUCCEEDS, .out = "42 b'\\x00\\xff\\n' 0o600\ntool\n\n"},
    {"file_modes_are_the_requests", AL_TEST_CELLS, "bash",
     "stat -c %a helper.py a/b/data.bin tool.sh", with_files, SUCCEEDS, .out = "644\n600\n777\n"},
    {"typescript_imports_a_file", AL_TEST_CELLS, "typescript",
     "import { n } from './helper';\nconsole.log(n + 1)", with_files, SUCCEEDS, .out = "8\n"},
    {"workdir", AL_TEST_NATIVE, "bash", "pwd; ls", workdir_below, SUCCEEDS,
     .out = "/sandbox/deep/er\nmain.sh\n"},
    {"workdir_tmp", AL_TEST_NATIVE, "bash", "pwd", workdir_tmp, SUCCEEDS, .out = "/tmp\n"},
    {"default_workdir", AL_TEST_NATIVE, "bash", "pwd; ls -A", SUCCEEDS,
     .out = "/sandbox\nmain.sh\n"},
    {"process_state_is_fresh", AL_TEST_CELLS, "bash",
     "umask; ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn' /proc/self/status; "
     "cat /proc/self/oom_score_adj; nice",
     SUCCEEDS, .out = "0022\n4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n1000\n0\n"},
    {"a_session_of_its_own", AL_TEST_CELLS, "python",
     "import os; print(os.getsid(0) == os.getpid() == os.getpgrp())", SUCCEEDS, .out = "True\n"},

    /* isolation that the request's author can see */
    {"root_is_read_only", AL_TEST_NATIVE, "bash", "touch /usr/x /x /etc/x", EXITS(1),
     .err_has = "Read-only file system"},
    {"no_network", AL_TEST_NATIVE, "python",
     "import socket\nfor a in ('192.0.2.1', '10.0.0.1'):\n s = socket.socket(); s.settimeout(2)\n"
     " try: s.connect((a, 80)); print('connected')\n except OSError as e: print(e.errno)",
     SUCCEEDS, .out = "101\n101\n"},
    {"own_loopback", AL_TEST_NATIVE, "python",
     "import socket\ns = socket.create_server(('127.0.0.1', 0)); "
     "c = socket.create_connection(s.getsockname()); print('ok')",
     SUCCEEDS, .out = "ok\n"},
    {"no_capabilities", AL_TEST_CELLS, "bash",
     "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | cut -f2 | sort -u",
     SUCCEEDS, .out = "0000000000000000\n1\n"},
    {"own_processes_only", AL_TEST_NATIVE, "python",
     "import os; print(sum(p.isdigit() for p in os.listdir('/proc')))", SUCCEEDS, .out = "2\n"},
    {"init_shows_no_path_of_the_host", AL_TEST_CELLS, "bash",
     "tr '\\0' '\\n' < /proc/1/cmdline | grep -v '^$'", SUCCEEDS, .out = "airlock-launcher\n"},
    {"init_is_out_of_reach", AL_TEST_CELLS, "bash", "kill -9 1 2>/dev/null || echo refused",
     SUCCEEDS, .out = "refused\n"},
    {"host_files_are_not_there", AL_TEST_NATIVE, "bash",
     "ls /root /home /var /run /etc/shadow /sys 2>/dev/null | wc -l", SUCCEEDS, .out = "0\n"},
    {"host_name", AL_TEST_NATIVE, "python", "import socket; print(socket.gethostname())", SUCCEEDS,
     .out = "sandbox\n"},
    {"no_netlink", AL_TEST_NATIVE, "python",
     "import socket\ntry: socket.socket(16, 3, 0)\nexcept OSError as e: print(e.errno)", SUCCEEDS,
     .out = "97\n"},
    {"kernel_settings_are_read_only", AL_TEST_NATIVE, "bash", "echo x > /proc/sys/kernel/hostname",
     EXITS(1), .err_has = "Read-only file system"},
    {"sysrq_is_masked", AL_TEST_NATIVE, "bash",
     "! [ -e /proc/sysrq-trigger ] || [ /proc/sysrq-trigger -ef /dev/null ]", SUCCEEDS},
    {"inits_memory_is_out_of_reach", AL_TEST_NATIVE, "bash", "cat /proc/1/environ /proc/1/mem",
     EXITS(1), .out = "", .err_has = "Permission denied"},
    {"no_child_for_its_parent", AL_TEST_NATIVE, "python",
     CHILD_FOR_ITS_PARENT "print('refused' if pid < 0 else 'made')", SUCCEEDS, .out = "refused\n"},
    {"a_child_for_its_parent_does_not_delay_the_end", AL_TEST_CELLS, "python", CHILD_FOR_ITS_PARENT,
     SUCCEEDS, .within_ms = 2000},
    {"socket_buffers_are_bounded", AL_TEST_NATIVE, "python", FILL_SOCKETS, memory_64, SUCCEEDS,
     .out = "True\n"},
    {"no_core_for_the_hosts_handler", AL_TEST_NATIVE, "python",
     "import resource as r\nr.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))\n"
     "r.setrlimit(r.RLIMIT_NOFILE, (20, 20)); print(r.getrlimit(r.RLIMIT_NOFILE))",
     SUCCEEDS, .out = "(1, 1)\n(20, 20)\n"},
    {"no_user_namespace", AL_TEST_NATIVE, "bash", "unshare -U true 2>/dev/null || echo refused",
     SUCCEEDS, .out = "refused\n"},
};

static void check_outcome(const struct row *row, const struct al_test_run *run)
{
    const struct al_result *r = &run->result;
    if (run->rc != 0) {
        fail_msg("the backend failed: %s", run->err.text);
    }
    if (r->status != row->status || r->reason != row->reason || r->limit_hit != row->limit ||
        (row->exit_value != KEEP &&
         (r->exit_kind != row->exit_kind || r->exit_value != row->exit_value)))
    {
        fail_msg("status %d/%d limit %d exit %d/%d (%s)\nstdout: %.400s\nstderr: %.400s", r->status,
                 r->reason, r->limit_hit, r->exit_kind, r->exit_value, r->error,
                 (const char *)run->out[0].data, (const char *)run->out[1].data);
    }
}

static void run_row(const struct row *row, struct al_backend *backend)
{
    char *code = with_nap(row->code);
    struct al_job_spec spec = al_test_spec(backend, row->language, code);
    if (row->change) {
        row->change(&spec);
    }
    struct al_test_run run;
    al_test_run(backend, &spec, &row->caller, &run);
    check_outcome(row, &run);
    const char *out = (const char *)run.out[AL_STDOUT].data;
    const char *err = (const char *)run.out[AL_STDERR].data;
    if (row->out) {
        assert_string_equal(out, row->out);
    }
    if (row->err) {
        assert_string_equal(err, row->err);
    }
    if (row->out_has && !strstr(out, row->out_has)) {
        fail_msg("stdout has no '%s': %s", row->out_has, out);
    }
    if (row->err_has && !strstr(err, row->err_has)) {
        fail_msg("stderr has no '%s': %s", row->err_has, err);
    }
    if (row->within_ms && run.took_ms > row->within_ms && !al_test_is_slow()) {
        fail_msg("took %lld ms, not %d", (long long)run.took_ms, row->within_ms);
    }
    if (row->check) {
        row->check(&run);
    }
    al_test_run_finish(&run);
    free(code);
}

struct state {
    const struct row *row;
    struct al_backend *backend;
};

static void test_row(void **state)
{
    const struct state *s = *state;
    run_row(s->row, s->backend);
}

#define ROWS (sizeof rows / sizeof rows[0])

/* With AIRLOCK_TEST_LANGUAGES ("bash,python") only rows of those: for a machine that lacks some. */
static bool is_asked_for(const struct row *row, const char *name, char **texts)
{
    const char *languages = getenv("AIRLOCK_TEST_LANGUAGES");
    bool found = !*texts;
    for (; *texts && !found; texts++) {
        found = strstr(name, *texts) != NULL;
    }
    return found && (!languages || strstr(languages, row->language));
}

/* contract_test [BACKEND/ROW...]: all, or those whose name contains one of the texts. */
int main(int argc, char **argv)
{
    static struct CMUnitTest tests[ROWS * AL_TEST_BACKENDS];
    static struct state states[ROWS * AL_TEST_BACKENDS];
    static char names[ROWS * AL_TEST_BACKENDS][96];
    size_t n = 0;
    al_test_start();
    for (unsigned b = 0; b < AL_TEST_BACKENDS; b++) {
        struct al_backend *backend = al_test_backend_of((enum al_test_backend)(1u << b));
        for (size_t i = 0; i < ROWS; i++) {
            snprintf(names[n], sizeof names[n], "%s/%s", backend->name, rows[i].name);
            if (!(rows[i].backends & (1u << b)) ||
                !is_asked_for(&rows[i], names[n], argv + (argc > 0))) {
                continue;
            }
            states[n] = (struct state){&rows[i], backend};
            tests[n] = (struct CMUnitTest){
                .name = names[n], .test_func = test_row, .initial_state = &states[n]};
            n++;
        }
    }
    int failed = _cmocka_run_group_tests("contract", tests, n, NULL, NULL);
    al_test_stop();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
