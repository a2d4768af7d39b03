"""Endurance: jobs of all kinds, one after the other without an end; what grows?"""

import concurrent.futures
import itertools
import statistics
import time

import grpc
from airlock.v1 import execution_pb2 as pb

from support import Progress, claim, rss_mb, status_of

AT_ONCE = 8
SAMPLES = 20
WARM_UP = 5000  # runs: until the history of jobs is full and the stores have their size
FLAT_PERCENT = 5
FLAT_MB = 0.5  # of a process that is smaller than ten of it
NASTY_EVERY = 100

S, F, T, K = pb.JOB_STATUS_SUCCEEDED, pb.JOB_STATUS_FAILED, pb.JOB_STATUS_TIMEOUT, pb.JOB_STATUS_KILLED

# Code, quotas, status and limit of endings that leave the most behind.
NASTY = (
    ("setsid sleep 60 & sleep 60", pb.Quotas(wall_seconds=0.1), T, pb.LIMIT_WALL),
    ("while :; do :; done", pb.Quotas(cpu_seconds=0.05), T, pb.LIMIT_CPU),
    ("head -c 30M /dev/zero > f; tail /dev/zero", pb.Quotas(memory_mb=40), F, pb.LIMIT_MEMORY),
    ("bomb() { bomb | bomb & }; bomb; sleep 60", pb.Quotas(wall_seconds=0.2, pids=16), T, pb.LIMIT_WALL),
    ("cat /dev/zero", pb.Quotas(output_bytes=100000), F, pb.LIMIT_OUTPUT),
    ("head -c 1G /dev/zero > f; sleep 60 & kill -KILL $$", pb.Quotas(), F, pb.LIMIT_UNSPECIFIED),
)


def request(number):
    """A request, and what it prints: of a hundred 5 python, 1 javascript, 5 local, 15 echo."""
    kind = number % 100
    backend = "echo" if 80 <= kind < 95 else "local" if 95 <= kind < 100 else "native"
    language, code = "bash", f"echo {number}"
    if 10 <= kind < 15:
        language, code = "python", f"print({number})"
    elif kind == 20:
        language, code = "javascript", f"console.log({number})"
    want = code if backend == "echo" else f"{number}\n"
    return (
        pb.RunRequest(code=code.encode(), language=language, backend=backend, cache_mode=pb.CACHE_MODE_OFF),
        want.encode(),
    )


def run_plain(stub, number):
    asked, want = request(number)
    result = stub.Run(asked, timeout=120).result
    return result.status == S and result.stdout == want, result


def run_nasty(stub, number):
    code, quotas, status, limit = NASTY[number // NASTY_EVERY % len(NASTY)]
    asked = pb.RunRequest(code=code.encode(), language="bash", quotas=quotas, cache_mode=pb.CACHE_MODE_OFF)
    result = stub.Run(asked, timeout=120).result
    return result.status == status and result.limit_hit == limit, result


def run_killed(stub, number):
    """Killed by its caller in the middle of a stream."""
    asked = pb.RunRequest(code=f"echo {number}; sleep 60 & sleep 60".encode(), language="bash")
    call = stub.Stream(iter([pb.StreamRequest(start=pb.StreamStart(request=asked))]), timeout=120)
    result = None
    for response in call:
        if response.stdout:
            stub.Kill(pb.KillRequest(job_id=response.job_id), timeout=60)
        if response.WhichOneof("event") == "result":
            result = response.result
    return result is not None and result.status == K, result


def run_one(stub, number):
    """An error text, or None when the result is right."""
    kind = number % NASTY_EVERY
    run = run_nasty if kind == 0 else run_killed if kind == 1 and number % 700 == 1 else run_plain
    try:
        right, result = run(stub, number)
    except grpc.RpcError as error:
        return f"run {number}: {error.code()}: {error.details()}"
    return None if right else f"run {number}: {result}"


def memory_of(server):
    return {name: rss_mb(pid) for name, pid in server.processes.items()}


def show(server, done, rate, possessions):
    """A line of figures, so that growth can be told from a step."""
    memory = ", ".join(
        f"{name} {rss_mb(pid):.1f} ({status_of(pid, 'RssAnon'):.1f})" for name, pid in server.processes.items()
    )
    rest = ", ".join(f"{n} {what}" for what, n in possessions.items())
    print(f"  {done:>7} runs, {rate:.0f}/s: RSS (anonymous) {memory} MiB; {rest}", flush=True)


def run_batch(pool, stub, numbers, progress):
    def job(number):
        error = run_one(stub, number)
        progress.step()
        return error

    return [error for error in pool.map(job, numbers) if error]


def rise(samples):
    """From the first to the last, by a straight line through (runs, MiB): what a heap keeps free makes single ones
    differ by more than they grow."""
    line = statistics.linear_regression(*zip(*samples))
    return [line.intercept + line.slope * runs for runs in (samples[0][0], samples[-1][0])]


def claim_flat(name, samples):
    """Of all, and of the second half by itself, since a fall at the begin would hide a leak."""
    early, late = max((rise(some) for some in (samples, samples[len(samples) // 2 :])), key=lambda x: x[1] - x[0])
    change = late - early
    claim(
        f"endurance: RSS of {name}",
        f"{early:.1f} to {late:.1f} MiB, {change / early * 100:+.1f} %",
        f"+-{FLAT_PERCENT} % or {FLAT_MB} MiB",
        change <= max(early * FLAT_PERCENT / 100, FLAT_MB),
    )


def endurance(server, stub, count):
    """What counts are the samples after warming up, half of the runs at most; of what must not grow at all the last."""
    progress, errors = Progress("endurance", count), []
    before, memory = None, []
    numbers = iter(range(count))
    done = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for n in range(1, SAMPLES + 1):
            size = count * n // SAMPLES - done
            start = time.monotonic()
            errors += run_batch(pool, stub, itertools.islice(numbers, size), progress)
            done += size
            rate = size / (time.monotonic() - start)
            time.sleep(1)
            after = server.settle(before) if before else server.possessions()
            if done >= min(WARM_UP, count // 2):
                before = before or after
                memory.append((done, memory_of(server)))
            show(server, done, rate, after)
    for error in errors[:5]:
        print("    " + error)
    claim(f"endurance: {count} right results", f"{count - len(errors)}", "all", not errors)
    for name in server.processes:
        claim_flat(name, [(runs, sample[name]) for runs, sample in memory])
    for what, early in before.items():
        claim(f"endurance: {what}", f"{early} to {after[what]}", "no more", after[what] <= early)
