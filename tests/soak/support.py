"""What the soak's claims need: an airlockd of one's own, its vital signs, a table of claims."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time

# As few cells made ahead as there can be: else their number follows the demand, and with it what there is.
CONFIG = """[server]
listen = 127.0.0.1:0
data_dir = {dir}/data
run_slots = 64
[quota]
max_inflight = 1000
cpu_seconds_per_minute = 604800
[cells]
prepared = 4
prestarted = 2
[local]
allow_unsafe = yes
"""
# For thousands of streams.
MANY = """[server]
listen = 127.0.0.1:0
data_dir = {dir}/data
stream_slots = 4000
queue_max = 4000
queue_tenant_max = 4000
output_memory_mb = 8192
[quota]
max_inflight = 4000
cpu_seconds_per_minute = 604800
[cells]
jobs_max = 4096
prepared = 4
prestarted = 2
"""
PF_EXITING = 4


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


def status_of(pid, key):
    """A figure of /proc/PID/status; of memory, MiB."""
    match = re.search(rf"^{key}:\s+(\d+)( kB)?", read(f"/proc/{pid}/status"), re.M)
    return int(match[1]) / (1024 if match[2] else 1) if match else 0.0


def rss_mb(pid):
    return status_of(pid, "VmRSS")


def count(folder):
    return len(os.listdir(folder))


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

    def __init__(self, program, text=CONFIG):
        self.dir = tempfile.TemporaryDirectory(prefix="airlock-soak.")
        os.chmod(self.dir.name, 0o755)
        self.log_path = self.dir.name + "/log"
        with open(self.dir.name + "/airlockd.conf", "w") as config:
            config.write(text.format(dir=self.dir.name))
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([program, "--config", config.name], stderr=log)
        if wait_until(lambda: "listening on" in read(self.log_path), 30) is None:
            sys.exit("airlockd did not start:\n" + read(self.log_path))
        self.address = re.search(r"listening on (\S+?)\"", read(self.log_path))[1]
        self.pid = self.process.pid
        (self.launcher,) = children_of(self.pid)
        (reaper,) = [c for c in children_of(self.launcher) if read(f"/proc/{c}/comm") == "airlock-reaper\n"]
        self.processes = {"airlockd": self.pid, "launcher": self.launcher, "reaper": reaper}
        fds = [f"/proc/{self.launcher}/fd/{fd}" for fd in os.listdir(f"/proc/{self.launcher}/fd")]
        links = [os.readlink(fd) for fd in fds if os.path.lexists(fd)]
        self.cgroups = [link for link in links if re.match(r"/sys/fs/cgroup/(.*/)?airlock-", link)]

    def rss_mb(self):
        return rss_mb(self.pid) + rss_mb(self.launcher)

    def possessions(self):
        """What a job may leave: processes, cgroups, mounts, folders."""
        return {
            "processes": len([p for p in descendants_of(self.pid) if is_alive(p)]),
            "cgroups": sum(len(next(os.walk(c))[1]) for c in self.cgroups),
            "mounts": read(f"/proc/{self.launcher}/mountinfo").count("\n"),
            "files": sum(len(d) + len(f) for _, d, f in os.walk(self.dir.name + "/data")),
            "open files": sum(count(f"/proc/{pid}/fd") for pid in self.processes.values()),
            "threads": sum(count(f"/proc/{pid}/task") for pid in self.processes.values()),
        }

    def settle(self, want):
        """Waits until nothing is there but `want`, for 5 s at most; what is there then."""
        wait_until(lambda: self.possessions() == want, 5)
        return self.possessions()

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
