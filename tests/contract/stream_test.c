/*
 * What a Stream's caller can do while a program runs, the same on every backend that claims it:
 * standard input, signals, terminals, and output that waits for its reader. What the server adds to
 * that (sequence numbers, resuming, statuses) is tested in tests/integration.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/contract/rows.h"

#define OUTPUT   AL_WITH(AL_CAP_STREAM)
#define STDIN    AL_WITH(AL_CAP_STREAM | AL_CAP_STDIN)
#define SIGNALS  AL_WITH(AL_CAP_STREAM | AL_CAP_SIGNALS)
#define TERMINAL AL_WITH(AL_CAP_STREAM | AL_CAP_STDIN | AL_CAP_PTY)

/* What may wait between a caller and a program that does not read: ctl's buffer, and those of a
 * pipe or a few sockets. */
#define STDIN_HELD_MAX (2u << 20)

/* --- programs --- */

#define WAIT_FOR_SIGNALS                                                          \
    "import signal\nall = {1, 2, 3, 10, 12, 15, 18, 20, 28}\n"                    \
    "signal.pthread_sigmask(signal.SIG_BLOCK, all)\nprint('ready', flush=True)\n" \
    "while True: print(int(signal.sigwait(all)), flush=True)"

/* Up to a "q" or the end. */
#define ECHO_BYTES                                                           \
    "import os\nif os.isatty(0): os.write(1, b'ready')\nc = os.read(0, 1)\n" \
    "while c and c != b'q':\n    os.write(1, c)\n    c = os.read(0, 1)"

/* As many bytes as there are, and whether each is the one that al_test_byte() says. */
#define IS_RIGHT "(bytes(range(251)) * (len(data) // 251 + 1))[:len(data)] == data"

#define COUNT_AFTER_SIGNAL                                                               \
    "import signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, {10})\n"               \
    "print('ready', flush=True)\nsignal.sigwait({10})\ndata = sys.stdin.buffer.read()\n" \
    "print(len(data), " IS_RIGHT ")"

#define COUNT_FROM_TERMINAL                                                   \
    "import os, tty\ntty.setraw(0)\nprint('ready', flush=True)\ndata = b''\n" \
    "while len(data) < 1 << 20: data += os.read(0, 65536)\nprint(" IS_RIGHT ")"

/* --- what a row changes in its job --- */

static void wall_500ms(struct al_job_spec *s)
{
    s->quotas.wall_ms = al_test_is_slow() ? 3000 : 500;
}

static void stdin_4m_output_16m(struct al_job_spec *s)
{
    static uint8_t zeros[4 << 20];
    s->stdin_bytes = (struct al_bytes){zeros, sizeof zeros};
    s->quotas.output_bytes = 16 << 20;
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

static void stdin_text_and_more(struct al_job_spec *s)
{
    stdin_text(s);
    s->stdin_open = true;
}

static void stdin_open_output_16m(struct al_job_spec *s)
{
    s->stdin_open = true;
    s->quotas.output_bytes = 16 << 20;
}

/* --- what a row looks at --- */

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

static void check_cut(const struct al_test_run *run)
{
    assert_true(run->result.stdout_truncated);
}

static void check_1m(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 1 << 20);
}

static void check_64k(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 65536);
}

static void check_five_bytes(const struct al_test_run *run)
{
    assert_int_equal(run->out[AL_STDOUT].len, 5);
    assert_memory_equal(run->out[AL_STDOUT].data,
                        "a\0\n\xff"
                        "b",
                        5);
}

/* Each byte of what was pushed, whatever its value, in its place. */
static void check_pushed_came_back(const struct al_test_run *run, size_t from, size_t n)
{
    const struct al_buf *out = &run->out[AL_STDOUT];
    assert_int_equal(run->pushed, n);
    assert_int_equal(out->len, from + n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(out->data[from + i], al_test_byte(i));
    }
}

static void check_every_byte_came_back(const struct al_test_run *run)
{
    check_pushed_came_back(run, strlen("ready"), 2510);
}

static void check_6m_came_back(const struct al_test_run *run)
{
    check_pushed_came_back(run, 0, 6 << 20);
}

static void check_pushed_8m(const struct al_test_run *run)
{
    assert_int_equal(run->pushed, 8 << 20);
}

/* All that was taken has come, and in order. */
static void check_counted(const struct al_test_run *run)
{
    char want[64];
    snprintf(want, sizeof want, "ready\n%zu True\n", run->pushed);
    assert_string_equal((const char *)run->out[AL_STDOUT].data, want);
}

static void check_filled_and_counted(const struct al_test_run *run)
{
    assert_in_range(run->pushed, AL_CTL_STDIN_MAX, STDIN_HELD_MAX);
    check_counted(run);
}

static const struct al_row rows[] = {
    /* standard input */
    {"stdin_is_empty", STDIN, "bash", "cat; echo end", SUCCEEDS, .out = "end\n", .within_ms = 3000},
    {"stdin_bytes", STDIN, "bash", "cat", stdin_text, SUCCEEDS, .out = "one\ntwo\n"},
    {"stdin_not_read", STDIN, "bash", "echo ok", stdin_4m, SUCCEEDS, .out = "ok\n"},
    {"stdin_closed_by_the_program", STDIN, "bash", "exec <&-; sleep 0.2; echo ok", stdin_4m,
     SUCCEEDS, .out = "ok\n"},
    {"stdin_all_read", STDIN, "bash", "wc -c", stdin_4m, SUCCEEDS, .out = "4194304\n"},
    {"stdin_through_ctl", STDIN, "bash", "cat", stdin_stays_open,
     .caller = {.steps = STEPS(TYPE("later\n"), END_OF_STDIN)}, SUCCEEDS, .out = "later\n"},
    {"stdin_comes_back", STDIN, "bash", "cat", stdin_4m_output_16m, SUCCEEDS, .check = check_4m},
    {"stdin_through_ctl_not_read", STDIN, "bash", "sleep 0.1; echo ok", stdin_stays_open,
     .caller = {.steps = STEPS(TYPE("unread\n"))}, SUCCEEDS, .out = "ok\n"},
    {"stdin_through_ctl_to_a_closed_one", STDIN, "bash", "exec <&-; sleep 0.1; echo ok",
     stdin_stays_open, .caller = {.steps = STEPS(TYPE("unread\n"), END_OF_STDIN)}, SUCCEEDS,
     .out = "ok\n"},
    {"stdin_byte_by_byte", STDIN, "python", ECHO_BYTES, stdin_stays_open,
     .caller = {.steps = STEPS(TYPE("a"), SEE("a"), TYPE("\0"), SEE("\0"), TYPE("\n"), SEE("\n"),
                               TYPE("\xff"), SEE("\xff"), TYPE("b"), SEE("b"), END_OF_STDIN)},
     SUCCEEDS, .check = check_five_bytes},
    {"stdin_is_bounded", STDIN | SIGNALS, "python", COUNT_AFTER_SIGNAL, stdin_stays_open,
     .caller = {.steps = STEPS(SEE("ready"), FILL, SIGNAL(SIGUSR1), END_OF_STDIN)}, SUCCEEDS,
     .check = check_filled_and_counted},
    {"stdin_goes_on_when_there_is_room", STDIN | SIGNALS, "python", COUNT_AFTER_SIGNAL,
     stdin_stays_open,
     .caller = {.steps = STEPS(SEE("ready"), FILL, SIGNAL(SIGUSR1), PUSH(3 << 20), END_OF_STDIN)},
     SUCCEEDS, .check = check_counted},
    {"stdin_after_the_requests_own", STDIN, "bash", "cat", stdin_text_and_more,
     .caller = {.steps = STEPS(SEE("two\n"), TYPE("three\n"), END_OF_STDIN)}, SUCCEEDS,
     .out = "one\ntwo\nthree\n"},
    {"stdin_much_of_it_to_a_closed_one", STDIN, "bash", "exec <&-; echo ready; sleep 0.3; echo ok",
     stdin_stays_open, .caller = {.steps = STEPS(SEE("ready"), PUSH(8 << 20), END_OF_STDIN)},
     SUCCEEDS, .out = "ready\nok\n", .check = check_pushed_8m},
    {"stdin_while_output_flows", STDIN, "bash", "cat", stdin_open_output_16m,
     .caller = {.steps = STEPS(PUSH(6 << 20), END_OF_STDIN)}, SUCCEEDS,
     .check = check_6m_came_back},

    /* signals */
    {"terminated_by_a_signal_of_the_caller", SIGNALS, "bash", "echo a; exec sleep @NAP@",
     .caller = {.signal_on_output = 15}, DIES_OF(15), .within_ms = 2000,
     .check = al_rows_check_nothing_left},
    {"signal_reaches_the_program", SIGNALS, "bash",
     "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done",
     .caller = {.signal_on_output = 10}, EXITS(5), .out = "ready\ngot\n"},
    {"signals_have_their_numbers", SIGNALS, "python", WAIT_FOR_SIGNALS,
     .caller = {.steps = STEPS(SEE("ready\n"), SIGNAL(SIGHUP), SEE("1\n"), SIGNAL(SIGINT),
                               SEE("2\n"), SIGNAL(SIGQUIT), SEE("3\n"), SIGNAL(SIGUSR1),
                               SEE("10\n"), SIGNAL(SIGUSR2), SEE("12\n"), SIGNAL(SIGTERM),
                               SEE("15\n"), SIGNAL(SIGCONT), SEE("18\n"), SIGNAL(SIGTSTP),
                               SEE("20\n"), SIGNAL(SIGWINCH), SEE("28\n"), SIGNAL(SIGKILL))},
     DIES_OF(SIGKILL), .out = "ready\n1\n2\n3\n10\n12\n15\n18\n20\n28\n"},
    {"signal_reaches_the_programs_group", SIGNALS, "python",
     "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {10})\nchild = os.fork()\n"
     "if not child:\n    print('child ready', flush=True)\n    signal.sigwait({10})\n    "
     "os._exit(7)\n"
     "signal.sigwait({10})\nprint(os.waitstatus_to_exitcode(os.wait()[1]))",
     .caller = {.steps = STEPS(SEE("child ready"), SIGNAL(SIGUSR1))}, SUCCEEDS,
     .out = "child ready\n7\n", .within_ms = 5000},
    {"signal_spares_other_groups", SIGNALS, "python",
     "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {10})\nready, r = os.pipe()\n"
     "child = os.fork()\nif not child:\n    os.setpgid(0, 0)\n    os.write(r, b'x')\n"
     "    print(signal.sigtimedwait({10}, 0.5) is None, flush=True)\n    os._exit(0)\n"
     "os.read(ready, 1)\nprint('ready', flush=True)\nsignal.sigwait({10})\nos.wait()",
     .caller = {.steps = STEPS(SEE("ready"), SIGNAL(SIGUSR1))}, SUCCEEDS, .out = "ready\nTrue\n"},
    {"signal_of_before_the_start_waits_for_it", SIGNALS, "bash", "exec sleep @NAP@",
     .caller = {.early_signal = SIGTERM}, DIES_OF(SIGTERM), .within_ms = 3000,
     .check = al_rows_check_nothing_left},
    {"ignored_signal_is_harmless", SIGNALS, "bash",
     "trap '' USR2; echo ready; read -r line; echo $line", stdin_stays_open,
     .caller = {.steps = STEPS(SEE("ready"), SIGNAL(SIGUSR2), TYPE("on\n"))}, SUCCEEDS,
     .out = "ready\non\n"},

    /* terminals */
    {"terminal_on_all_three", TERMINAL, "bash",
     "for fd in 0 1 2; do test -t $fd && echo yes; done; tty", terminal, SUCCEEDS,
     .out_has = "yes\r\nyes\r\nyes\r\n/dev/pts/"},
    {"terminal_has_its_size", TERMINAL, "bash", "stty size; echo $TERM", terminal, SUCCEEDS,
     .out = "30 100\r\nxterm-256color\r\n"},
    {"terminal_of_the_requests_kind", TERMINAL, "bash", "echo $TERM", terminal_of_a_dumb_kind,
     SUCCEEDS, .out = "dumb\r\n"},
    {"terminal_carries_stderr_too", TERMINAL, "bash", "echo a; echo b >&2", terminal, SUCCEEDS,
     .out = "a\r\nb\r\n"},
    {"terminal_is_the_controlling_one", TERMINAL, "bash", "echo here > /dev/tty", terminal,
     SUCCEEDS, .out = "here\r\n"},
    {"terminal_resize", TERMINAL, "bash",
     "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done", terminal,
     .caller = {.steps = STEPS(SEE("ready"), RESIZE(41, 73))}, EXITS(3),
     .out = "ready\r\n41 73\r\n"},
    {"terminal_interrupt", TERMINAL, "python",
     "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(@NAP@)\n"
     "except KeyboardInterrupt:\n    print('got')",
     terminal, .caller = {.steps = STEPS(SEE("ready"), TYPE("\003"))}, SUCCEEDS,
     .out = "ready\r\n^Cgot\r\n", .within_ms = 3000},
    {"terminal_quit", TERMINAL, "python",
     "import time\nprint('ready', flush=True)\ntime.sleep(@NAP@)", terminal,
     .caller = {.steps = STEPS(SEE("ready"), TYPE("\034"))}, DIES_OF(3), .out = "ready\r\n^\\",
     .within_ms = 3000},
    {"terminal_end_of_input", TERMINAL, "bash", "stty -echo; cat; echo end", terminal,
     .caller = {.steps = STEPS(TYPE("one\n"), END_OF_STDIN)}, SUCCEEDS, .out_has = "one\r\nend\r\n",
     .within_ms = 3000},
    {"terminal_raw_is_8_bit_clean", TERMINAL, "python",
     "import os, tty\ntty.setraw(0)\nos.write(1, bytes(range(256)))", terminal, SUCCEEDS,
     .check = check_all_bytes},
    {"terminal_much_output", TERMINAL, "python",
     "import os, tty\ntty.setraw(1)\nn = 4 << 20\nwhile n: n -= os.write(1, bytes(min(n, 65536)))",
     terminal_output_16m, SUCCEEDS, .check = check_4m},
    {"terminal_closed_by_the_program", TERMINAL, "bash", "exec <&- >&- 2>&-; sleep 0.1; exit 4",
     terminal, EXITS(4)},
    {"terminal_job_killed", TERMINAL, "bash", "echo ready; sleep @NAP@", terminal,
     .caller = {.cancel_on_output = true}, IS_KILLED, .within_ms = 1500},
    {"terminal_and_a_compile_step", TERMINAL, "typescript",
     "process.stdout.write(`${process.stdout.isTTY} ${process.stdout.columns}`)", terminal,
     SUCCEEDS, .out = "true 100"},
    {"terminal_size_follows", TERMINAL, "python",
     "import os, signal, sys\n"
     "def size(*_): os.write(1, b'%d %d\\n' % os.get_terminal_size()[::-1])\n"
     "signal.signal(signal.SIGWINCH, size)\nos.write(1, b'ready\\n')\nsys.stdin.readline()",
     terminal,
     .caller = {.steps =
                    STEPS(SEE("ready"), RESIZE(41, 73), SEE("41 73\r\n"), RESIZE(1, 1),
                          SEE("1 1\r\n"), RESIZE(500, 65535), SEE("500 65535\r\n"), TYPE("\n"))},
     SUCCEEDS},
    {"terminal_interrupt_reaches_the_foreground", TERMINAL, "bash",
     "sleep @NAP@ & cat; echo not reached", terminal,
     .caller = {.steps = STEPS(TYPE("a\n"), SEE("a\r\na\r\n"), TYPE("\003"))}, DIES_OF(SIGINT),
     .within_ms = 3000, .check = al_rows_check_nothing_left},
    {"terminal_stop_and_go_on", TERMINAL, "bash",
     "bash -mc 'echo ready; cat; echo stopped; fg >/dev/null; echo end'", terminal,
     .caller = {.steps = STEPS(SEE("ready"), TYPE("one\n"), SEE("one\r\none\r\n"), TYPE("\032"),
                               SEE("stopped"), TYPE("two\n"), SEE("two\r\ntwo\r\n"), TYPE("\004"))},
     SUCCEEDS, .out_has = "end\r\n"},
    {"terminal_end_of_input_by_key", TERMINAL, "bash", "cat; read -r line; echo got $line",
     terminal,
     .caller = {.steps = STEPS(TYPE("a\n"), SEE("a\r\na\r\n"), TYPE("\004"), TYPE("b\n"))},
     SUCCEEDS, .out_has = "got b\r\n"},
    {"terminal_byte_by_byte", TERMINAL, "python", "import tty\ntty.setraw(0)\n" ECHO_BYTES,
     terminal,
     .caller = {.steps = STEPS(SEE("ready"), TYPE("a"), SEE("a"), TYPE("\003"), SEE("\003"),
                               TYPE("\004"), SEE("\004"), TYPE("\r"), SEE("\r"), TYPE("q"))},
     SUCCEEDS},
    {"terminal_input_is_8_bit_clean", TERMINAL, "python",
     "import os, tty\ntty.setraw(0)\nprint('ready', end='', flush=True)\nn = 0\n"
     "while n < 2510:\n    n += os.write(1, os.read(0, 4096))",
     terminal, .caller = {.steps = STEPS(SEE("ready"), PUSH(2510))}, SUCCEEDS,
     .check = check_every_byte_came_back},
    {"terminal_much_input", TERMINAL, "python", COUNT_FROM_TERMINAL, terminal,
     .caller = {.steps = STEPS(SEE("ready"), PUSH(1 << 20))}, SUCCEEDS, .out_has = "True"},
    {"terminal_typed_ahead", TERMINAL, "bash", "sleep 0.2; read -r a; read -r b; echo $b $a",
     terminal, .caller = {.steps = STEPS(TYPE("one\ntwo\n"))}, SUCCEEDS, .out_has = "two one\r\n"},
    {"terminal_input_nobody_reads_is_harmless", TERMINAL, "bash", "stty raw; echo ready; sleep 0.3",
     terminal, .caller = {.steps = STEPS(SEE("ready"), FILL)}, SUCCEEDS},
    {"terminal_held_by_a_child_ends_with_the_program", TERMINAL, "bash",
     "sleep @NAP@ & setsid sleep @NAP@ & echo last; exit 6", terminal, EXITS(6),
     .out_has = "last\r\n", .within_ms = 3000, .check = al_rows_check_nothing_left},
    {"terminal_hang_up_leaves_nothing", TERMINAL, "bash",
     "trap '' HUP TERM INT; nohup setsid sleep @NAP@ >/dev/null 2>&1 & echo ready; sleep @NAP@",
     terminal, .caller = {.steps = STEPS(SEE("ready"), CANCEL)}, IS_KILLED, .within_ms = 2000,
     .check = al_rows_check_nothing_left},
    {"terminal_takes_signals_by_number", TERMINAL | SIGNALS, "bash",
     "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.02; done", terminal,
     .caller = {.steps = STEPS(SEE("ready"), SIGNAL(SIGUSR1))}, EXITS(5), .out_has = "got\r\n"},
    {"terminal_slow_reader_stops_the_program", TERMINAL, "python",
     "import os, tty\ntty.setraw(1)\nn = 1 << 20\nwhile n: n -= os.write(1, bytes(min(n, 65536)))",
     terminal_output_16m, .caller = {.sink_room = 1000, .room_after_ms = 300}, SUCCEEDS,
     .check = check_1m},

    /* output and the end */
    {"cancel_at_once", OUTPUT, "python", "import time; time.sleep(@NAP@)",
     .caller = {.cancel_after_ms = 1}, IS_KILLED, .within_ms = 1500},
    {"cancel_in_mid_flood", OUTPUT, "bash", "cat /dev/zero", output_16m,
     .caller = {.cancel_on_output = true}, IS_KILLED, .within_ms = 2000},
    {"cancel", OUTPUT, "bash", "echo a; sleep @NAP@", .caller = {.cancel_on_output = true},
     IS_KILLED, .out = "a\n", .within_ms = 2000, .check = al_rows_check_nothing_left},
    {"cancel_kills_the_tree", OUTPUT, "bash", "setsid sleep @NAP@ & sleep @NAP@ & echo a; wait",
     .caller = {.cancel_on_output = true}, IS_KILLED, .within_ms = 2000,
     .check = al_rows_check_nothing_left},
    {"slow_reader_stops_the_program", OUTPUT, "bash", "head -c 4000000 /dev/zero; echo end >&2",
     output_16m, .caller = {.sink_room = 1000, .room_after_ms = 300}, SUCCEEDS, .err = "end\n"},
    {"a_reader_that_stays_away_loses_the_rest", OUTPUT, "bash", "cat /dev/zero", wall_500ms,
     .caller = {.sink_room = 1000}, MEETS(AL_STATUS_TIMEOUT, AL_LIMIT_WALL), .within_ms = 9000,
     .check = check_cut},
    {"cancel_does_not_wait_for_a_reader", OUTPUT, "bash", "cat /dev/zero", output_16m,
     .caller = {.sink_room = 1000, .cancel_after_ms = 100}, IS_KILLED, .within_ms = 2000},
    {"output_of_one_byte_is_not_held_back", OUTPUT, "bash",
     "printf a; read -r line; printf $line; read -r line", stdin_stays_open,
     .caller = {.steps = STEPS(SEE("a"), TYPE("b\n"), SEE("b"), END_OF_STDIN)}, EXITS(1),
     .out = "ab"},
    {"output_of_the_last_moment", OUTPUT, "bash", "head -c 65536 /dev/zero; kill -9 $$",
     DIES_OF(SIGKILL), .check = check_64k},
};

/* stream_test [BACKEND/ROW...]: all, or those whose name contains one of the texts. */
int main(int argc, char **argv)
{
    return al_rows_main("stream", rows, sizeof rows / sizeof *rows, argc, argv);
}
