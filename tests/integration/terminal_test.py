"""airlock as a person at a terminal uses it, above all stream --tty, against a running airlockd.

usage: terminal_test.py   (AIRLOCK_SERVER says where it is; airlock is on the PATH)

Prints `ok   NAME` or `FAIL NAME` for each check, as tests/support/check.sh does; exits 1 if one
failed.
"""

import fcntl
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from proxy import Proxy

CHECKS = []
PATIENCE_S = 20


def check(function):
    CHECKS.append(function)
    return function


def prepare():
    """In the child: its terminal is the controlling one, and a signal leaves no core file."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for signo in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # a shell's background job, or nohup's, has them ignored
        signal.signal(signo, signal.SIG_DFL)


class Terminal:
    """A terminal with airlock on it. What it shows is read until it is as expected."""

    def __init__(self, code, language="bash", rows=24, cols=80, options=(), command=("stream", "--tty"), **files):
        self._start([*command, "-l", language, "-e", code, *options], rows, cols, **files)

    @classmethod
    def of(cls, *arguments):
        terminal = cls.__new__(cls)
        terminal._start(arguments, 24, 80)
        return terminal

    def _start(self, arguments, rows, cols, **files):
        self.master, slave = os.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(slave)
        self.shown = ""
        self.slave = slave
        self.process = subprocess.Popen(
            ["airlock", *arguments],
            **{"stdin": slave, "stdout": slave, "stderr": slave, **files},
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=prepare,
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
        data = text.encode()
        while data:
            data = data[os.write(self.master, data) :]

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

    def rest(self):
        """What is shown up to the end of airlock."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None or select.select([self.master], [], [], 0)[0]:
            assert time.monotonic() < deadline, f"airlock does not end: {self.shown!r}"
            if select.select([self.master], [], [], 0.05)[0]:
                self.shown += os.read(self.master, 65536).decode(errors="replace")
        return self.shown

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
    screen.timeout(100)  # a size that comes just before getch() waits is only seen by the next
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
    for signo in (signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1):
        with Terminal("echo ready; sleep 60") as t:
            t.expect("ready\r\n")
            t.process.send_signal(signo)
            assert t.end() == -signo


WAITS = "echo ready; read -r line; echo got:$line; exit 3"
LINGERS = ("--linger", "60", "--wall", "120")


def job_left(terminal):
    """Types ~. and returns the id of the job that goes on."""
    terminal.type("~.")
    job = terminal.expect(r"left job (\w{16}), which goes on; to see it again: airlock ([^\r]*)attach --tty (\w{16})\r\n")
    assert job[1] == job[3]
    assert terminal.end() == 0
    return job[1]


@check
def leaving_a_job_that_lingers():
    with Terminal(WAITS, options=LINGERS) as t:
        t.expect("ready\r\n")
        job = job_left(t)
    with Terminal.of("attach", "--tty", job) as t:
        t.expect("ready\r\n")
        job_left(t)
    with Terminal.of("attach", "--tty", job) as t:
        t.expect("ready\r\n")
        t.type("a\r")
        t.expect("got:a\r\n")
        assert t.end() == 3


@check
def leaving_another_job_kills_it():
    with Terminal("printf ready; sleep 60") as t:
        t.expect("ready")
        t.type("~.")
        job = t.expect(r"\r\n(?:\x1b\[31m)?airlock:\S* left job (\w{16}), and so it is killed: [^\r]*\r\n")[1]
        assert t.end() == 137
    deadline = time.monotonic() + PATIENCE_S
    while b"KILLED" not in subprocess.check_output(["airlock", "job", "--json", job]):
        assert time.monotonic() < deadline, "the job runs on"


@check
def tildes_that_are_the_programs():
    with Terminal("stty -echo; echo ready; for i in 1 2 3; do read -r line; echo got:$line; done") as t:
        t.expect("ready\r\n")
        t.type("~~.\ra~.\r~\r")
        t.expect(r"got:~\.\r\ngot:a~\.\r\ngot:~\r\n")
        assert t.end() == 0


@check
def leaving_while_there_is_no_connection():
    proxy = Proxy(os.environ["AIRLOCK_SERVER"])
    try:
        with Terminal(WAITS, options=(*LINGERS, "--server", proxy.address)) as t:
            t.expect("ready\r\n")
            proxy.refuses = True
            proxy.cut(reset=True)
            time.sleep(0.5)
            job = job_left(t)
        subprocess.check_call(["airlock", "kill", job], stdout=subprocess.DEVNULL)
    finally:
        proxy.close()


def silent_server():
    """The address of a server that says hello in HTTP/2, and then nothing: it takes 64 KiB."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.sendall(b"\0\0\0\4\0\0\0\0\0")
        while connection.recv(65536):
            pass

    threading.Thread(target=serve, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


@check
def leaving_when_the_network_takes_no_more():
    with Terminal(WAITS, options=("--server", silent_server())) as t:
        time.sleep(0.3)
        t.type("typed ahead\r" * 8000)
        t.type("~.")
        t.expect("left before the server had named the job")
        assert t.end() == 125


FOLLOW = ("run", "--follow")
PROGRESS = r"\r\x1b\[Kairlock: running, \d\.\d s, 6 B"


@check
def progress_of_a_run():
    with Terminal("echo first; sleep 1.5; echo second; exit 4", command=FOLLOW) as t:
        t.expect(r"^first\r\n")
        t.expect(PROGRESS)
        t.expect(r"\r\x1b\[Ksecond\r\n")
        shown = t.rest().rpartition("\r\x1b[K")[2]  # a progress line may have come in between
        assert "running" not in shown and "exit 4" in shown, shown
        assert t.end() == 4


@check
def progress_keeps_out_of_an_unfinished_line():
    with Terminal("printf half; sleep 1; echo ' a line'", command=FOLLOW) as t:
        t.expect(r"^half a line\r\n")
        assert t.end() == 0


@check
def progress_when_the_output_goes_elsewhere():
    with Terminal("printf 'first\n'; sleep 1", command=FOLLOW, stdout=subprocess.PIPE) as t:
        t.expect(PROGRESS)
        t.expect(PROGRESS)
        shown = t.rest()
        assert re.search(r"\r\x1b\[Kairlock: .*succeeded", shown), shown
        assert t.process.stdout.read() == b"first\n"
        t.process.stdout.close()
        assert t.end() == 0


@check
def no_progress_as_json():
    with Terminal("echo a; sleep 1", command=FOLLOW, options=("--json",), stdout=subprocess.DEVNULL) as t:
        shown = t.rest()
        assert "running" not in shown, shown
        assert t.end() == 0


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
