"""airlock stream --tty, as a person at a terminal uses it, against a running airlockd.

usage: terminal_test.py   (AIRLOCK_SERVER says where it is; airlock is on the PATH)

Prints `ok   NAME` or `FAIL NAME` for each check, as tests/support/check.sh does; exits 1 if one
failed.
"""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import traceback

CHECKS = []
PATIENCE_S = 20


def check(function):
    CHECKS.append(function)
    return function


class Terminal:
    """A terminal with `airlock stream --tty` on it. What it shows is read until it is as expected."""

    def __init__(self, code, language="bash", rows=24, cols=80, options=()):
        self.master, slave = os.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(slave)
        self.shown = ""
        self.slave = slave
        self.process = subprocess.Popen(
            ["airlock", "stream", "--tty", "-l", language, "-e", code, *options],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern):
        """Waits until the pattern is shown; what was before it, and itself, is used up."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.shown, re.DOTALL)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"{pattern!r} is not in {self.shown!r}")
            self.shown += os.read(self.master, 65536).decode(errors="replace")
        self.shown = self.shown[found.end() :]
        return found

    def end(self):
        """The exit code; the terminal must be as it was."""
        code = self.process.wait(PATIENCE_S)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal was not restored"
        return code


@check
def size_is_this_terminals():
    with Terminal("stty size", rows=33, cols=111) as t:
        t.expect(r"33 111\r\n")
        assert t.end() == 0


@check
def size_follows():
    with Terminal("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.02; done") as t:
        t.expect("ready\r\n")
        t.resize(50, 132)
        t.expect(r"50 132\r\n")
        assert t.end() == 0


@check
def interrupt_goes_to_the_program():
    with Terminal("trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.02; done") as t:
        t.expect("ready\r\n")
        t.type("\x03")
        t.expect("caught\r\n")
        assert t.end() == 7


@check
def stopping_and_going_on():
    code = "bash -mc 'echo ready; cat; echo back; fg >/dev/null; echo end'"
    with Terminal(code) as t:
        t.expect("ready\r\n")
        t.type("one\r")
        t.expect("one\r\none\r\n")
        t.type("\x1a")
        t.expect("back\r\n")
        t.type("two\r")
        t.expect("two\r\ntwo\r\n")
        t.type("\x04")
        t.expect("end\r\n")
        assert t.end() == 0


@check
def keys_are_echoed_once():
    with Terminal("echo ready; read -r line; echo got:$line") as t:
        t.expect("ready\r\n")
        t.type("hello\r")
        t.expect(r"^hello\r\ngot:hello\r\n")
        assert t.end() == 0


@check
def python_repl():
    with Terminal("import code; code.interact('hi', local={})", "python") as t:
        t.expect("hi\r\n>>> ")
        t.type("6 * 7\r")
        t.expect("42\r\n>>> ")
        t.type("while True: pass\r\r")
        time.sleep(0.3)
        t.type("\x03")
        t.expect("KeyboardInterrupt")
        t.expect(">>> ")
        t.type("\x04")
        assert t.end() == 0


@check
def full_screen_program():
    code = """
import curses
def main(screen):
    while True:
        rows, cols = screen.getmaxyx()
        screen.clear()
        screen.addstr(rows // 2, 2, f'size {rows}x{cols}')
        screen.refresh()
        key = screen.getch()
        if key == ord('q'):
            return
curses.wrapper(main)
"""
    with Terminal(code, "python", rows=20, cols=60) as t:
        t.expect("size 20x60")
        t.resize(30, 70)
        t.expect("30x70|30.*70")
        t.type("q")
        assert t.end() == 0


@check
def exit_code_and_signal():
    with Terminal("exit 9") as t:
        assert t.end() == 9
    with Terminal("kill -USR1 $$") as t:
        assert t.end() == 128 + signal.SIGUSR1


@check
def terminal_is_restored_when_the_client_is_killed():
    for signo in (signal.SIGTERM, signal.SIGHUP):
        with Terminal("echo ready; sleep 60") as t:
            t.expect("ready\r\n")
            t.process.send_signal(signo)
            assert t.end() == 128 + signo


@check
def works_in_a_pipe():
    done = subprocess.run(
        ["airlock", "stream", "-t", "-l", "bash", "-e", "stty -echo; stty size; cat"],
        input=b"piped\n",
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done
    assert b"24 80\r\n" in done.stdout and b"piped\r\n" in done.stdout, done


def main():
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok   terminal: {name}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL terminal: {name}\n{traceback.format_exc()}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
