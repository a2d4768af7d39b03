"""Jobs at once: does each have its own limits, and how long does one take beside the worst?"""

import contextlib
import statistics
import threading
import time

import grpc
from airlock.v1 import execution_pb2 as pb

from support import claim

AT_ONCE = 64
SLOWER = 3
ROUNDS = 3
RUNS = 3
GOING_S = 1  # until the bombs do their worst

BOMBS = {
    "fork": "bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 60",
    "memory": "while :; do python3 -c 'b = bytearray(500 << 20)'; done 2>/dev/null",
    "disk": "while :; do head -c 100M /dev/zero > a; head -c 100M /dev/zero > b; rm a b; done 2>/dev/null",
    "output": "exec cat /dev/zero",
}
NORMAL = "n = 0\nfor i in range(2000000): n += i * i % 7\nprint(n)"

S, F, T = pb.JOB_STATUS_SUCCEEDED, pb.JOB_STATUS_FAILED, pb.JOB_STATUS_TIMEOUT


def kinds(i):
    """What job i of 64 does once all are there, its limits, and how it has to end."""
    return (
        ("echo done", pb.Quotas(memory_mb=32 + i), S, pb.LIMIT_UNSPECIFIED),
        ("tail /dev/zero", pb.Quotas(memory_mb=16 + i), F, pb.LIMIT_MEMORY),
        ("sleep 60", pb.Quotas(wall_seconds=8 + i * 0.01), T, pb.LIMIT_WALL),
        ("while :; do :; done", pb.Quotas(cpu_seconds=0.1 + i * 0.004), T, pb.LIMIT_CPU),
        ("yes", pb.Quotas(output_bytes=1000 + i), F, pb.LIMIT_OUTPUT),
        (f"exit {i}", pb.Quotas(pids=8 + i), F, pb.LIMIT_UNSPECIFIED),
    )[i % 6]


def figures_are_own(i, quotas, result):
    effective = result.effective_quotas
    for field, value in quotas.ListFields():
        if abs(getattr(effective, field.name) - value) > 1e-9:
            return False
    if result.limit_hit == pb.LIMIT_MEMORY:
        return abs(result.memory_peak_mb / quotas.memory_mb - 1) <= 0.05
    if result.limit_hit == pb.LIMIT_WALL:
        return quotas.wall_seconds * 1000 <= result.duration_ms <= quotas.wall_seconds * 1000 + 500
    if result.limit_hit == pb.LIMIT_CPU:
        return quotas.cpu_seconds <= result.cpu_seconds <= quotas.cpu_seconds * 1.03 + 0.004
    return result.exit_code == i or result.status != F or result.limit_hit == pb.LIMIT_OUTPUT


def stream_job(stub, i, meeting, right):
    code, quotas, status, limit = kinds(i)
    ready = threading.Event()

    def events():
        run = pb.RunRequest(code=f"echo ready; read -r _; {code}".encode(), language="bash", quotas=quotas)
        yield pb.StreamRequest(start=pb.StreamStart(request=run))
        ready.wait()
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(60)
        yield pb.StreamRequest(stdin=b"\n")

    result = None
    for response in stub.Stream(events(), timeout=120):
        ready.set()
        if response.WhichOneof("event") == "result":
            result = response.result
    ready.set()
    right[i] = (
        result is not None
        and (result.status, result.limit_hit) == (status, limit)
        and figures_are_own(i, quotas, result)
    )
    if not right[i]:
        print(f"    job {i}: {result}")


def own_limits(stub):
    meeting, right = threading.Barrier(AT_ONCE), [False] * AT_ONCE
    threads = [
        threading.Thread(target=stream_job, args=(stub, i, meeting, right), daemon=True) for i in range(AT_ONCE)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    claim(f"{AT_ONCE} jobs at once, each with its own limits", f"{sum(right)}", "all right", all(right))


# --- beside the worst ---


@contextlib.contextmanager
def bombs(stub, names):
    """Runs those of BOMBS, again whenever they end, until it is left."""
    stop, calls = threading.Event(), {}
    quotas = pb.Quotas(memory_mb=128, output_bytes=1 << 40)

    def drop(name):
        run = pb.RunRequest(code=BOMBS[name].encode(), language="bash", quotas=quotas)
        with contextlib.suppress(grpc.RpcError):  # it is cancelled in the end
            while not stop.is_set():
                calls[name] = stub.Stream(iter([pb.StreamRequest(start=pb.StreamStart(request=run))]))
                for _ in calls[name]:
                    pass

    threads = [threading.Thread(target=drop, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    time.sleep(GOING_S)
    try:
        yield
    finally:
        stop.set()
        for call in calls.values():
            call.cancel()
        for thread in threads:
            thread.join()


def run_normal(stub):
    """Milliseconds that it waited and ran; None when its result is wrong."""
    run = pb.RunRequest(code=NORMAL.encode(), language="python", cache_mode=pb.CACHE_MODE_OFF)
    result = stub.Run(run, timeout=120).result
    right = result.status == S and result.stdout == b"3999997\n"
    return result.queue_ms + result.duration_ms if right else None


def beside(stub, names):
    """Turn about, so that a machine that is busy for other reasons is so for both."""
    alone, together = [], []
    for _ in range(ROUNDS):
        alone += [run_normal(stub) for _ in range(RUNS)]
        with bombs(stub, names):
            together += [run_normal(stub) for _ in range(RUNS)]
    what = f"beside a {names[0]} bomb" if len(names) == 1 else f"beside {len(names)} bombs at once"
    right = None not in alone + together
    claim(f"{what}: right results", f"{len(alone + together)}", "all", right)
    if right:
        a, t = statistics.median(alone), statistics.median(together)
        claim(f"{what}: time of a normal job", f"{a:.0f} to {t:.0f} ms, {t / a:.2f} x", f"< {SLOWER} x", t / a < SLOWER)


def neighbours(stub):
    own_limits(stub)
    for name in BOMBS:
        beside(stub, [name])
    beside(stub, list(BOMBS))
