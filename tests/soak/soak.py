"""Long runs against a real airlockd: is memory flat, is each result right, is nothing left over?

usage: soak.py STUBS AIRLOCKD [options]; as root. tests/soak/run calls it. Prints a table with a figure,
a limit and PASS or FAIL for each claim; exits 1 if one failed.
"""

import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, sys.argv[1])

import grpc
from airlock.v1 import execution_pb2 as pb
from airlock.v1 import execution_pb2_grpc as pb_grpc

CONFIG = """[server]
listen = 127.0.0.1:0
data_dir = {dir}/data
run_slots = 16
[quota]
max_inflight = 1000
cpu_seconds_per_minute = 604800
"""
PF_EXITING = 4
FLAT_PERCENT = 5
STALL_GROWTH_MB = 32
STALL_SECONDS = 5
DEATH_MS = 1000


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def children_of(pid):
    threads = os.listdir(f"/proc/{pid}/task") if os.path.isdir(f"/proc/{pid}/task") else []
    return [int(c) for t in threads for c in read(f"/proc/{pid}/task/{t}/children").split()]


def descendants_of(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants_of(child)]
    return found


def is_alive(pid):
    """Whether it still runs code: a zombie, or one that is exiting, does not."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(fields) and fields[0] != "Z" and not int(fields[6]) & PF_EXITING


def rss_mb(pid):
    match = re.search(r"^VmRSS:\s+(\d+) kB", read(f"/proc/{pid}/status"), re.M)
    return int(match[1]) / 1024 if match else 0.0


def wait_until(condition, seconds):
    """Returns the milliseconds it took, or None."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            return None
        time.sleep(0.01)
    return (time.monotonic() - start) * 1000


class Server:
    """An airlockd of one's own, its launcher and what they own on this machine."""

    def __init__(self, program):
        self.dir = tempfile.TemporaryDirectory(prefix="airlock-soak.")
        os.chmod(self.dir.name, 0o755)
        self.log_path = self.dir.name + "/log"
        with open(self.dir.name + "/airlockd.conf", "w") as config:
            config.write(CONFIG.format(dir=self.dir.name))
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([program, "--config", config.name], stderr=log)
        if wait_until(lambda: "listening on" in read(self.log_path), 30) is None:
            sys.exit("airlockd did not start:\n" + read(self.log_path))
        self.address = re.search(r"listening on (\S+?)\"", read(self.log_path))[1]
        self.pid = self.process.pid
        (self.launcher,) = children_of(self.pid)
        fds = [f"/proc/{self.launcher}/fd/{fd}" for fd in os.listdir(f"/proc/{self.launcher}/fd")]
        links = [os.readlink(fd) for fd in fds if os.path.lexists(fd)]
        self.cgroups = [link for link in links if re.match(r"/sys/fs/cgroup/.*/airlock-", link)]

    def rss_mb(self):
        return rss_mb(self.pid) + rss_mb(self.launcher)

    def possessions(self):
        """What a job may leave: processes, cgroups, mounts, folders."""
        return {
            "processes": len([p for p in descendants_of(self.pid) if is_alive(p)]),
            "cgroups": sum(len(next(os.walk(c))[1]) for c in self.cgroups),
            "mounts": read(f"/proc/{self.launcher}/mountinfo").count("\n"),
            "files": sum(len(d) + len(f) for _, d, f in os.walk(self.dir.name + "/data")),
            "open files": len(os.listdir(f"/proc/{self.pid}/fd"))
            + len(os.listdir(f"/proc/{self.launcher}/fd")),
        }

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)
        self.dir.cleanup()


class Progress:
    """Counts on standard error, where that is a terminal."""

    def __init__(self, what, total):
        self.what, self.total, self.done = what, total, 0
        self.lock = threading.Lock()
        self.shown = sys.stderr.isatty()

    def step(self):
        with self.lock:
            self.done += 1
            done = self.done
        if self.shown and (done % 100 == 0 or done == self.total):
            end = "\n" if done == self.total else ""
            print(f"\r{self.what}: {done} of {self.total}", end=end, file=sys.stderr, flush=True)
        return done


CLAIMS = []


def claim(what, figure, limit, holds):
    CLAIMS.append(holds)
    print(f"{what:<46} {figure:>34}   {limit:<22} {'PASS' if holds else 'FAIL'}", flush=True)


def run_one(stub, backend, number):
    """Runs a program that prints its number; an error text, or None when the result is right."""
    if number % 10 == 0:
        language, code = "python", f"print({number})"
    else:
        language, code = "bash", f"echo {number}"
    request = pb.RunRequest(code=code.encode(), language=language, backend=backend,
                            cache_mode=pb.CACHE_MODE_OFF)
    want = f"{number}\n".encode() if backend == "native" else code.encode()
    try:
        result = stub.Run(request, timeout=60).result
    except grpc.RpcError as error:
        return f"run {number}: {error.code()}: {error.details()}"
    if result.status != pb.JOB_STATUS_SUCCEEDED or result.stdout != want:
        return f"run {number}: {result}"
    return None


def run_many(stub, backend, count, concurrency, on_done=lambda done: None):
    progress = Progress(f"{backend}, {concurrency} at a time", count)

    def job(number):
        error = run_one(stub, backend, number)
        on_done(progress.step())
        return error

    with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
        errors = [error for error in pool.map(job, range(count)) if error]
    for error in errors[:3]:
        print("    " + error)
    return errors


def flat_memory(server, stub, backend, count):
    early = min(1000, count // 2)
    seen = {}

    def sample(done):
        if done in (early, count):
            seen[done] = server.rss_mb()

    errors = run_many(stub, backend, count, 4, sample)
    change = (seen[count] / seen[early] - 1) * 100
    claim(f"{backend}: {count} right results", f"{count - len(errors)}", "all", not errors)
    claim(
        f"{backend}: RSS from run {early} to {count}",
        f"{seen[early]:.1f} to {seen[count]:.1f} MiB, {change:+.1f} %",
        f"+-{FLAT_PERCENT} %",
        abs(change) <= FLAT_PERCENT,
    )


def many_at_once(server, stub, count):
    run_many(stub, "native", 16, 16)
    time.sleep(1)
    before = server.possessions()
    start = time.monotonic()
    errors = run_many(stub, "native", count, 16)
    rate = count / (time.monotonic() - start)
    claim(
        f"native: {count} right results, 16 at a time",
        f"{count - len(errors)}, {rate:.0f}/s",
        "all",
        not errors,
    )
    wait_until(lambda: server.possessions() == before, 3)
    after = server.possessions()
    more = {k: after[k] - before[k] for k in after if after[k] > before[k]}
    figure = ", ".join(f"{n} {what}" for what, n in more.items()) or "nothing"
    claim("native: what is left of them", figure, "nothing", not more)


def stalled_reader(server, stub, megabytes):
    code = f"head -c {megabytes}M /dev/zero"
    quotas = pb.Quotas(wall_seconds=600, cpu_seconds=120)
    start = pb.StreamStart(request=pb.RunRequest(code=code.encode(), language="bash", quotas=quotas))
    before = server.rss_mb()
    call = stub.Stream(iter([pb.StreamRequest(start=start)]), timeout=700)
    got, result, most = 0, None, before
    stall_at, stalled = 1 << 20, False
    for response in call:
        got += len(response.stdout)
        if response.WhichOneof("event") == "result":
            result = response.result
        if got >= stall_at and not stalled:
            stalled = True
            deadline = time.monotonic() + STALL_SECONDS
            while time.monotonic() < deadline:
                most = max(most, server.rss_mb())
                time.sleep(0.05)
    growth = most - before
    claim(
        f"stream of {megabytes} MiB: RSS while its reader stalls",
        f"{before:.1f} to {most:.1f} MiB, +{growth:.1f} MiB",
        f"< {STALL_GROWTH_MB} MiB more",
        growth < STALL_GROWTH_MB,
    )
    complete = result is not None and result.status == pb.JOB_STATUS_SUCCEEDED
    claim(
        f"stream of {megabytes} MiB: all of it arrives",
        f"{got / (1 << 20):.0f} MiB",
        f"{megabytes} MiB",
        complete and got == megabytes << 20,
    )


def killed_server(server, channel):
    stub = pb_grpc.ExecutionServiceStub(channel)
    code = b"sleep 600 & setsid sleep 600 & trap '' TERM HUP; echo ready; sleep 600"
    quotas = pb.Quotas(wall_seconds=600)
    start = pb.StreamStart(request=pb.RunRequest(code=code, language="bash", quotas=quotas))
    calls = [stub.Stream(iter([pb.StreamRequest(start=start)])) for _ in range(8)]
    for call in calls:
        next(response for response in call if response.stdout)
    processes = descendants_of(server.pid)
    os.kill(server.pid, signal.SIGKILL)
    took = wait_until(lambda: not any(map(is_alive, processes)), 10)
    figure = f"{len(processes)} dead after " + (f"{took:.0f} ms" if took is not None else "more than 10 s")
    claim("kill -9 of airlockd, 8 jobs: processes", figure, f"{DEATH_MS} ms", took is not None and took <= DEATH_MS)
    took = wait_until(lambda: not any(map(os.path.exists, server.cgroups)), 10)
    left = sum(map(os.path.exists, server.cgroups))
    claim("kill -9 of airlockd, 8 jobs: cgroup folders", f"{left} left", "0", took is not None)


def options():
    parser = argparse.ArgumentParser(prog="tests/soak/run", description="Long runs against a real airlockd.")
    parser.add_argument("stubs", help=argparse.SUPPRESS)
    parser.add_argument("airlockd", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=20000, help="runs for flat memory, of echo and of native each (%(default)s)")
    parser.add_argument("--concurrent-runs", type=int, default=10000, help="runs at concurrency 16 (%(default)s)")
    parser.add_argument("--stream-mb", type=int, default=1024, help="size of the stalled stream in MiB (%(default)s)")
    given = parser.parse_args()
    if given.runs < 2 or given.concurrent_runs < 1 or given.stream_mb < 8:
        parser.error("too few: at least 2 runs, 1 concurrent run, 8 MiB")
    return given


def main():
    given = options()
    server = Server(given.airlockd)
    try:
        with grpc.insecure_channel(server.address) as channel:
            stub = pb_grpc.ExecutionServiceStub(channel)
            flat_memory(server, stub, "echo", given.runs)
            flat_memory(server, stub, "native", given.runs)
            many_at_once(server, stub, given.concurrent_runs)
            stalled_reader(server, stub, given.stream_mb)
            killed_server(server, channel)
    finally:
        server.stop()
    return 0 if all(CLAIMS) else 1


if __name__ == "__main__":
    sys.exit(main())
