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

#include "tests/contract/rows.h"

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

static void check_2m_on_stderr(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDERR].len, 2 << 20);
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

static void check_2m_each(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 2 << 20);
    assert_int_equal(run->out[AL_STDERR].len, 2 << 20);
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

/* What held them, or started the program, is none of its processes. */
static void check_8_pids(const struct al_test_run *run)
{
    if (run->result.pids_peak != 0) { /* this kernel does not say */
        assert_int_equal(run->result.pids_peak, 8);
    }
}

/* Each layer that is claimed is there; and a sandbox claims all of them. */
static void check_own_namespaces(const struct al_test_run *run)
{
    static const char *const names[] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};
    const char *out = (const char *)run->out[AL_STDOUT].data;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64], own[64];
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        ssize_t n = readlink(path, own, sizeof own - 1);
        assert_true(n > 0);
        own[n] = '\0';
        if (!strstr(out, names[i]) || strstr(out, own)) {
            fail_msg("the %s namespace is the host's: %s", names[i], out);
        }
    }
    assert_int_equal(run->result.isolation, AL_LAYERS_ALL);
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

static const struct al_row rows[] = {
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
     "import os\nfor i in range(512):\n os.write(1,b'o'*4096); os.write(2,b'e'*4096)", output_16m,
     SUCCEEDS, .check = check_2m_each},
    {"stderr_floods_before_stdout_is_used", AL_TEST_CELLS, "python",
     "import os\nfor i in range(512): os.write(2,b'e'*4096)\nprint('done')", output_16m, SUCCEEDS,
     .out = "done\n", .check = check_2m_on_stderr},
    {"character_in_two_writes", AL_TEST_CELLS, "bash",
     "printf '\\xe3'; sleep 0.05; printf '\\x81\\x82'", SUCCEEDS, .out = "\xe3\x81\x82"},
    {"echo_waits_for_a_slow_reader", AL_TEST_ECHO, "python", "1234567890",
     .caller = {.sink_room = 3, .room_after_ms = 50}, SUCCEEDS, .out = "1234567890"},
    {"large_output", AL_TEST_CELLS, "bash", "head -c 8388608 /dev/zero", output_16m, SUCCEEDS,
     .check = check_8m},
    {"dev_stdout_opens", AL_TEST_CELLS, "bash", "echo a > /dev/stdout; echo b > /dev/stderr",
     SUCCEEDS, .out = "a\n", .err = "b\n"},
    {"nul_in_code", AL_TEST_SANDBOXES, "bash", "", code_with_nul, SUCCEEDS, .out_has = "a\n"},
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
     .check = al_rows_check_nothing_left},
    {"setsid_grandchild_dies", AL_TEST_CELLS, "bash",
     "setsid setsid sleep @NAP@ & sleep 0.1; exit 0", SUCCEEDS, .within_ms = 3000,
     .check = al_rows_check_nothing_left},
    {"ignored_signals_do_not_help", AL_TEST_CELLS, "bash",
     "trap '' TERM INT HUP; while :; do sleep @NAP@; done", wall_500ms,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 2000,
     .check = al_rows_check_nothing_left},

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
     .exit_value = AL_ANY_EXIT, .within_ms = 6000},
    {"threads_count_as_pids", AL_TEST_CELLS, "python",
     "import threading, time\nfor i in range(20): threading.Thread(target=time.sleep, args=(9,), "
     "daemon=True).start()",
     pids_8, MEETS(AL_STATUS_FAILED, AL_LIMIT_PIDS), .within_ms = 5000},
    {"pids_are_the_programs_alone", AL_TEST_CELLS, "python",
     "import os, time\nn = 1\ntry:\n while True:\n  if os.fork() == 0: time.sleep(30)\n  n += 1\n"
     "except OSError: print(n)",
     pids_8, SUCCEEDS, .out = "8\n", .check = check_8_pids},
    {"nested_sleep_meets_wall", AL_TEST_CELLS, "bash", "sh -c 'sh -c \"sleep @NAP@\"'", wall_2s,
     MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 2700,
     .check = al_rows_check_nothing_left},
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
     .exit_value = AL_ANY_EXIT, .within_ms = 6000, .check = al_rows_check_nothing_left},
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
    {"shared_memory_is_of_the_disk", AL_TEST_SANDBOXES, "bash",
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

    /* without a program */
    {"echo_cancel", AL_TEST_ECHO, "python", "1234567890",
     .caller = {.sink_room = 3, .cancel_after_ms = 20}, IS_KILLED, .out = "123", .within_ms = 1000},
    {"echo_meets_wall_without_a_reader", AL_TEST_ECHO, "python", "1234567890", wall_500ms,
     .caller = {.sink_room = 3}, MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .out = "123",
     .within_ms = 2000},

    /* surroundings */
    {"args", AL_TEST_CELLS, "python", "import sys; print(sys.argv[1:])", with_args, SUCCEEDS,
     .out = "['a b', '', 'ü', '--version']\n"},
    {"env_is_clean", AL_TEST_SANDBOXES, "bash", "env -u _ -u PWD -u SHLVL | sort", SUCCEEDS,
     .out =
         "HOME=/sandbox\nLANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\nTMPDIR=/tmp\nTZ=UTC\n"},
    {"env_of_the_request", AL_TEST_SANDBOXES, "python",
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
    {"workdir", AL_TEST_SANDBOXES, "bash", "pwd; ls", workdir_below, SUCCEEDS,
     .out = "/sandbox/deep/er\nmain.sh\n"},
    {"workdir_tmp", AL_TEST_SANDBOXES, "bash", "pwd", workdir_tmp, SUCCEEDS, .out = "/tmp\n"},
    {"default_workdir", AL_TEST_SANDBOXES, "bash", "pwd; ls -A", SUCCEEDS,
     .out = "/sandbox\nmain.sh\n"},
    {"process_state_is_fresh", AL_TEST_CELLS, "bash",
     "umask; ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn' /proc/self/status; "
     "cat /proc/self/oom_score_adj; nice",
     SUCCEEDS, .out = "0022\n4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n1000\n0\n"},
    {"a_session_of_its_own", AL_TEST_CELLS, "python",
     "import os; print(os.getsid(0) == os.getpid() == os.getpgrp())", SUCCEEDS, .out = "True\n"},

    /* isolation that the request's author can see */
    {"root_is_read_only", AL_TEST_SANDBOXES, "bash", "touch /usr/x /x /etc/x", EXITS(1),
     .err_has = "Read-only file system"},
    {"no_network", AL_TEST_SANDBOXES, "python",
     "import socket\nfor a in ('192.0.2.1', '10.0.0.1'):\n s = socket.socket(); s.settimeout(2)\n"
     " try: s.connect((a, 80)); print('connected')\n except OSError as e: print(e.errno)",
     SUCCEEDS, .out = "101\n101\n"},
    {"own_loopback", AL_TEST_SANDBOXES, "python",
     "import socket\ns = socket.create_server(('127.0.0.1', 0)); "
     "c = socket.create_connection(s.getsockname()); print('ok')",
     SUCCEEDS, .out = "ok\n"},
    {"no_capabilities", AL_TEST_CELLS, "bash",
     "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status | cut -f2 | sort -u",
     SUCCEEDS, .out = "0000000000000000\n1\n"},
    {"own_processes_only", AL_TEST_NATIVE | AL_TEST_BUBBLEWRAP, "python",
     "import os; print(sum(p.isdigit() for p in os.listdir('/proc')))", SUCCEEDS, .out = "2\n"},
    {"own_processes_and_the_warden_only", AL_TEST_FIREJAIL, "python", /* whose pid 1 is its own */
     "import os; print(sum(p.isdigit() for p in os.listdir('/proc')))", SUCCEEDS, .out = "3\n"},
    {"firejails_init_shows_no_path_of_the_host", AL_TEST_FIREJAIL, "bash", /* firejail itself */
     "tr '\\0' '\\n' < /proc/1/cmdline | grep '^/'", SUCCEEDS,
     .out = "/.airlock/firejail\n/.airlock/launcher\n"},
    {"who_kills_its_warden_dies", AL_TEST_FIREJAIL, "bash", "kill -9 $PPID; sleep @NAP@",
     DIES_OF(9), .within_ms = 3000, .check = al_rows_check_nothing_left},
    {"who_kills_everybody_dies", AL_TEST_FIREJAIL, "bash", "kill -9 -1; sleep @NAP@", DIES_OF(9),
     .within_ms = 3000, .check = al_rows_check_nothing_left},
    {"who_kills_everybody_goes_on", AL_TEST_CELLS & ~AL_TEST_FIREJAIL, "bash",
     "sleep @NAP@ & kill -9 -1; echo alive", SUCCEEDS, .out = "alive\n",
     .check = al_rows_check_nothing_left},
    {"init_shows_no_path_of_the_host", AL_TEST_CELLS & ~AL_TEST_FIREJAIL, "bash",
     "tr '\\0' '\\n' < /proc/1/cmdline | grep -v '^$'", SUCCEEDS, .out = "airlock-launcher\n"},
    {"init_is_out_of_reach", AL_TEST_LOCAL | AL_TEST_NATIVE, "bash", /* another user's */
     "kill -9 1 2>/dev/null || echo refused", SUCCEEDS, .out = "refused\n"},
    {"init_survives", AL_TEST_CELLS, "bash", "kill -9 1 2>/dev/null; sleep 0.05; echo alive",
     SUCCEEDS, .out = "alive\n"},
    {"namespaces_are_its_own", AL_TEST_SANDBOXES, "bash",
     "for i in user pid mnt net ipc uts cgroup; do readlink /proc/self/ns/$i; done", SUCCEEDS,
     .check = check_own_namespaces},
    {"host_files_are_not_there", AL_TEST_SANDBOXES, "bash",
     "ls /root /home /var /run /etc/shadow /sys 2>/dev/null | wc -l", SUCCEEDS, .out = "0\n"},
    {"host_name", AL_TEST_SANDBOXES, "python", "import socket; print(socket.gethostname())",
     SUCCEEDS, .out = "sandbox\n"},
    {"no_netlink", AL_TEST_SANDBOXES, "python",
     "import socket\ntry: socket.socket(16, 3, 0)\nexcept OSError as e: print(e.errno)", SUCCEEDS,
     .out = "97\n"},
    {"kernel_settings_are_read_only", AL_TEST_SANDBOXES, "bash",
     "echo x > /proc/sys/kernel/hostname", EXITS(1), .err_has = "Read-only file system"},
    {"sysrq_is_masked", AL_TEST_SANDBOXES, "bash",
     "! [ -e /proc/sysrq-trigger ] || "
     "[ $(stat -c %d /proc/sysrq-trigger) != $(stat -c %d /proc) ]",
     SUCCEEDS},
    {"inits_memory_is_out_of_reach", AL_TEST_SANDBOXES, "bash", "cat /proc/1/environ /proc/1/mem",
     EXITS(1), .out = "", .err_has = "Permission denied"},
    {"no_child_for_its_parent", AL_TEST_SANDBOXES, "python",
     CHILD_FOR_ITS_PARENT "print('refused' if pid < 0 else 'made')", SUCCEEDS, .out = "refused\n"},
    {"a_child_for_its_parent_does_not_delay_the_end", AL_TEST_CELLS, "python", CHILD_FOR_ITS_PARENT,
     SUCCEEDS, .within_ms = 2000},
    {"socket_buffers_are_bounded", AL_TEST_SANDBOXES, "python", FILL_SOCKETS, memory_64, SUCCEEDS,
     .out = "True\n"},
    {"no_core_for_the_hosts_handler", AL_TEST_SANDBOXES, "python",
     "import resource as r\nr.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))\n"
     "r.setrlimit(r.RLIMIT_NOFILE, (20, 20)); print(r.getrlimit(r.RLIMIT_NOFILE))",
     SUCCEEDS, .out = "(1, 1)\n(20, 20)\n"},
    {"no_user_namespace", AL_TEST_SANDBOXES, "bash", "unshare -U true 2>/dev/null || echo refused",
     SUCCEEDS, .out = "refused\n"},
};

/* contract_test [BACKEND/ROW...]: all, or those whose name contains one of the texts. */
int main(int argc, char **argv)
{
    return al_rows_main("contract", rows, sizeof rows / sizeof *rows, argc, argv);
}
