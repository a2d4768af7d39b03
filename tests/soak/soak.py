"""Long runs against a real airlockd: is memory flat, is each result right, is nothing left over?

usage: soak.py STUBS AIRLOCKD [options]; as root. tests/soak/run calls it. Prints a table with a figure,
a limit and PASS or FAIL for each claim; exits 1 if one failed.
"""

import argparse
import concurrent.futures
import os
import signal
import sys
import time

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import grpc
from airlock.v1 import execution_pb2 as pb
from airlock.v1 import execution_pb2_grpc as pb_grpc

from endurance import endurance
from neighbours import neighbours
from resume import run_schedule
from streams import EVEN, GROWING, MIXED, busy_streams, idle_streams
from support import CLAIMS, CONFIG, MANY, Progress, Server, claim, descendants_of, is_alive, wait_until

FLAT_PERCENT = 5
STALL_GROWTH_MB = 32
STALL_SECONDS = 5
DEATH_MS = 1000
SCHEDULE_LINGER_SECONDS = 20


def run_one(stub, backend, number):
    """Runs a program that prints its number; an error text, or None when the result is right."""
    if number % 10 == 0:
        language, code = "python", f"print({number})"
    else:
        language, code = "bash", f"echo {number}"
    request = pb.RunRequest(code=code.encode(), language=language, backend=backend,
                            cache_mode=pb.CACHE_MODE_OFF)
    want = code.encode() if backend == "echo" else f"{number}\n".encode()
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
    run_many(stub, "native", 200, 16)
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
    after = server.settle(before)
    more = {k: after[k] - before[k] for k in after if after[k] > before[k]}
    figure = ", ".join(f"{n} {what}" for what, n in more.items()) or "nothing"
    claim("native: what is left of them", figure, "nothing", not more)


def possessions_at_rest(server):
    """Once nothing changes any more: cells are made ahead for some time after a start."""
    seen = server.possessions()
    for _ in range(30):
        time.sleep(1)
        before, seen = seen, server.possessions()
        if before == seen:
            break
    return seen


def tools(server, stub, count):
    """The backends whose programs another program starts."""
    for backend in ("bubblewrap", "firejail"):
        run_many(stub, backend, 40, 4)
        before, names = possessions_at_rest(server), set(os.listdir("/run"))
        start = time.monotonic()
        errors = run_many(stub, backend, count, 4)
        rate = count / (time.monotonic() - start)
        claim(
            f"{backend}: {count} right results, 4 at a time",
            f"{count - len(errors)}, {rate:.0f}/s",
            "all",
            not errors,
        )
        after = server.settle(before)
        # Threads are kept, as many as there were jobs at once, and that differs by one or two.
        more = [f"{after[k] - before[k]} {k}" for k in after if after[k] > before[k] and k != "threads"]
        more += [f"/run/{name}" for name in set(os.listdir("/run")) - names]
        claim(f"{backend}: what is left of them", ", ".join(more) or "nothing", "nothing", not more)


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


def rested_rss_mb(server):
    """The least of a minute and a bit: airlockd gives back once a minute what it has freed."""
    samples = []
    for _ in range(13):
        time.sleep(5)
        samples.append(server.rss_mb())
    return min(samples)


def broken_network(server, count):
    """In two halves: what the first has made the server keep (threads, cells, its heap), the second finds."""

    def half(first):
        progress = Progress("a network that breaks", count // 2)

        def job(number):
            done = run_schedule(server.address, first + number, linger_seconds=SCHEDULE_LINGER_SECONDS)
            progress.step()
            return done

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(job, range(count // 2)))
        for error in [error for error, _ in done if error][:3]:
            print("    " + error)
        time.sleep(SCHEDULE_LINGER_SECONDS + 5)  # what has ended is forgotten
        return [sum(1 for error, _ in done if not error), sum(attaches for _, attaches in done)]

    first = half(0)
    before, begin = server.possessions(), rested_rss_mb(server)
    second = half(count // 2)
    after, end = server.settle(before), rested_rss_mb(server)
    right, attaches = (a + b for a, b in zip(first, second))
    figure = f"{right}, {attaches} attaches"
    claim(f"resume: {count // 2 * 2} schedules, complete and in order", figure, "all", right == count // 2 * 2)
    claim("resume: RSS after one half and the other", f"{begin:.1f} and {end:.1f} MiB", "< 8 MiB more", end - begin < 8)
    # Threads are kept, as many as there were jobs at once, and that differs by one or two.
    more = {k: after[k] - before[k] for k in after if after[k] > before[k] and k != "threads"}
    figure = ", ".join(f"{n} {what}" for what, n in more.items()) or "nothing"
    claim("resume: what is left of the second", figure, "nothing", not more)


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


PARTS = ("memory", "many", "tools", "stalled", "streams", "resume", "neighbours", "endurance", "death")


def options():
    parser = argparse.ArgumentParser(prog="tests/soak/run", description="Long runs against a real airlockd.")
    parser.add_argument("stubs", help=argparse.SUPPRESS)
    parser.add_argument("airlockd", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=20000, help="runs for flat memory, of echo and of native each (%(default)s)")
    parser.add_argument("--concurrent-runs", type=int, default=10000, help="runs at concurrency 16 (%(default)s)")
    parser.add_argument("--tool-runs", type=int, default=1000, help="runs of each tool's backend (%(default)s)")
    parser.add_argument("--stream-mb", type=int, default=1024, help="size of the stalled stream in MiB (%(default)s)")
    parser.add_argument("--schedules", type=int, default=1000, help="jobs over a network that breaks (%(default)s)")
    parser.add_argument("--endurance-runs", type=int, default=100000, help="mixed runs while all is watched (%(default)s)")
    parser.add_argument("--idle-streams", type=int, default=2000, help="idle interactive streams at once (%(default)s)")
    parser.add_argument("--idle-seconds", type=int, default=600, help="how long they are idle (%(default)s)")
    parser.add_argument("--busy-streams", type=int, default=200, help="streams that print all they can, at once (%(default)s)")
    parser.add_argument("--busy-seconds", type=int, default=20, help="for how long they do (%(default)s)")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given several times")
    given = parser.parse_args()
    if given.idle_streams < 8 or given.idle_seconds < 1 or given.busy_streams < 4 or given.busy_seconds < 1:
        parser.error("too few: at least 8 idle streams, 1 s, 4 busy streams, 1 s")
    if given.runs < 2 or given.concurrent_runs < 1 or given.stream_mb < 8 or given.endurance_runs < 20 or given.schedules < 5:
        parser.error("too few: at least 2 runs, 1 concurrent run, 8 MiB, 20 runs for endurance, 5 schedules")
    return given


def run_part(part, given, server, channel):
    stub = pb_grpc.ExecutionServiceStub(channel)
    if part == "memory":
        flat_memory(server, stub, "echo", given.runs)
        flat_memory(server, stub, "native", given.runs)
    elif part == "many":
        many_at_once(server, stub, given.concurrent_runs)
    elif part == "tools":
        tools(server, stub, given.tool_runs)
    elif part == "streams":
        run_many(stub, "native", 200, 16)  # what a server makes once it has
        idle_streams(server, given.idle_streams, given.idle_seconds)
        busy_streams(server, given.busy_streams, given.busy_seconds, "even windows", (EVEN,))
        busy_streams(server, given.busy_streams, given.busy_seconds, "growing windows", (GROWING,))
        busy_streams(server, given.busy_streams, given.busy_seconds, "one in four growing", MIXED)
    elif part == "stalled":
        stalled_reader(server, stub, given.stream_mb)
    elif part == "resume":
        broken_network(server, given.schedules)
    elif part == "neighbours":
        neighbours(stub)
    elif part == "endurance":
        endurance(server, stub, given.endurance_runs)
    else:
        killed_server(server, channel)


def main():
    given = options()
    for part in PARTS:
        if given.only and part not in given.only:
            continue
        server = Server(given.airlockd, MANY if part == "streams" else CONFIG)
        try:
            with grpc.insecure_channel(server.address) as channel:
                run_part(part, given, server, channel)
        finally:
            server.stop()
    return 0 if all(CLAIMS) else 1


if __name__ == "__main__":
    sys.exit(main())
