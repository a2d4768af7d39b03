"""Many streams on one server: thousands of idle ones, and hundreds that print all they can.

The clients are processes of their own, each with an event loop: one alone could not read as fast as
the server writes.
"""

import asyncio
import multiprocessing
import os
import statistics
import time

import grpc
from airlock.v1 import execution_pb2 as pb
from airlock.v1 import execution_pb2_grpc as pb_grpc

from support import children_of, claim, is_alive, read

CLIENTS = 4
AT_ONCE = 16  # streams that one client is starting
PATIENCE_S = 120
HALF = 0.5

# How much a client lets the server send ahead is its own doing: gRPC lets it grow with what arrives, so
# that who has gets more. Without that every stream has 64 KiB on its way, and the server alone decides.
EVEN = {"grpc.http2.bdp_probe": 0}
GROWING = {}
MIXED = (EVEN, EVEN, EVEN, GROWING)  # of four client processes
WARM_UP_S = 5
SIZE = pb.TerminalSize(rows=24, cols=80)

IDLE = 'echo ready; read -r -n 1 key; echo "got:$key"; read -r -n 1 key; exit 0'
BUSY = """
import os, sys, time
os.write(1, b'ready')
sys.stdin.readline()
block, end = bytes(65536), time.monotonic() + %d
while time.monotonic() < end: os.write(1, block)
"""

# What one stream may cost, in KiB.
SERVER_KB = 96
LAUNCHER_KB = 8


# --- in a client's process ---


class Stream:
    def __init__(self, stub, code, language, terminal):
        quotas = pb.Quotas(wall_seconds=3600, cpu_seconds=60)
        request = pb.RunRequest(code=code.encode(), language=language, quotas=quotas)
        self.start = pb.StreamStart(request=request, terminal=SIZE if terminal else None)
        self.stub = stub
        self.tail = b""
        self.bytes = 0
        self.window = (0, 0)
        self.result = None

    async def hear(self, until=None):
        """Reads until stdout ends with that text, or the result has come; False: the call has ended."""
        while self.result is None:
            message = await self.call.read()
            if message is grpc.aio.EOF:
                return False
            if self.window[0] <= time.monotonic() < self.window[1]:
                self.bytes += len(message.stdout)
            self.tail = (self.tail + message.stdout[-64:])[-64:]
            if message.WhichOneof("event") == "result":
                self.result = message.result
            if until is not None and until in self.tail:
                return True
        return until is None

    async def open(self):
        self.call = self.stub.Stream()
        await self.call.write(pb.StreamRequest(start=self.start))
        if not await self.hear(b"ready"):
            raise RuntimeError(f"it ended at once: {self.result}")

    async def type(self, text):
        await self.call.write(pb.StreamRequest(stdin=text))

    async def answer(self):
        """Milliseconds from a key to the program's answer."""
        begin = time.monotonic()
        await self.type(b"x")
        if not await self.hear(b"got:x"):
            raise RuntimeError(f"no answer: {self.result}")
        return (time.monotonic() - begin) * 1000

    async def finish(self):
        await self.call.done_writing()
        await self.hear()
        if self.result is None or self.result.status != pb.JOB_STATUS_SUCCEEDED:
            raise RuntimeError(f"not succeeded: {self.result}")

    async def flood(self, begin, end):
        """Bytes that came while every program was writing: not all begin and end at the same moment."""
        self.window = (begin, end)
        await self.type(b"\n")
        await self.hear()
        return self.bytes


class Client:
    """Carries out what the parent says: a method's name and its arguments."""

    def __init__(self, address, options):
        self.address = address
        self.options = options
        self.channels = []
        self.streams = []

    def channel(self):
        # Each its own connection: as from so many machines.
        options = {"grpc.use_local_subchannel_pool": 1, **self.options}
        self.channels.append(grpc.aio.insecure_channel(self.address, options=tuple(options.items())))
        return self.channels[-1]

    async def each(self, method, *arguments, at_once=1 << 20):
        """What the method gives for each stream, and the errors of those that fail."""
        gate = asyncio.Semaphore(at_once)

        async def one(stream):
            async with gate:
                return await asyncio.wait_for(getattr(stream, method)(*arguments), PATIENCE_S)

        done = await asyncio.gather(*map(one, self.streams[:]), return_exceptions=True)
        return [d for d in done if not isinstance(d, Exception)], [repr(d) for d in done if isinstance(d, Exception)]

    async def open(self, count, code, language, terminal, streams_a_channel):
        known, self.streams = self.streams, []
        for i in range(count):
            if i % streams_a_channel == 0:
                stub = pb_grpc.ExecutionServiceStub(self.channel())
            self.streams.append(Stream(stub, code, language, terminal))
        done = await self.each("open", at_once=AT_ONCE)
        self.streams = known + self.streams
        return done

    async def lost(self):
        return [], [f"ended: {s.call.code}" for s in self.streams if s.call.done()]

    async def close(self):
        for channel in self.channels:
            await channel.close()
        return [], []


async def serve(pipe, address, options):
    client = Client(address, options)
    loop = asyncio.get_running_loop()
    while True:
        try:
            method, arguments = await loop.run_in_executor(None, pipe.recv)
        except EOFError:
            return
        work = getattr(client, method, None)
        pipe.send(await (work(*arguments) if work else client.each(method, *arguments)))


def client_process(pipe, address, options):
    asyncio.run(serve(pipe, address, options))


# --- in the parent ---


class Clients:
    """The client processes, which all do the same at once."""

    def __init__(self, address, options=(EVEN,)):
        context = multiprocessing.get_context("spawn")  # gRPC does not survive a fork
        self.pipes, self.processes = [], []
        for i in range(CLIENTS):
            ours, theirs = context.Pipe()
            arguments = (theirs, address, options[i % len(options)])
            process = context.Process(target=client_process, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def all(self, method, *arguments):
        for pipe in self.pipes:
            pipe.send((method, arguments))
        done, errors = [], []
        for pipe in self.pipes:
            some, wrong = pipe.recv()
            done += some
            errors += wrong
        for error in errors[:3]:
            print(f"    {method}: {error}")
        return done, errors

    def close(self):
        self.all("close")
        for pipe, process in zip(self.pipes, self.processes):
            pipe.close()
            process.join()


def rollup(pid, key):
    for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    return 0


def pss_kb(pid):
    """Its own pages, and its share of those that it has in common with others."""
    return rollup(pid, "Pss")


def meminfo_kb(*keys):
    lines = dict(line.split(":") for line in read("/proc/meminfo").splitlines())
    return sum(int(lines[key].split()[0]) for key in keys)


def charged_kb(server):
    """What the jobs' groups are charged with: their programs, and what the kernel has for them."""
    files = [f"{group}/{name}" for group in server.cgroups for name in ("memory.usage_in_bytes", "memory.current")]
    return sum(int(read(file) or 0) for file in files) / 1024


def memory(server):
    """Where memory is, in KiB."""
    cells = [p for p in children_of(server.launcher) if is_alive(p) and p not in server.processes.values()]
    return {
        "server": rollup(server.pid, "Rss"),
        "launcher": rollup(server.launcher, "Rss"),
        "programs": sum(map(pss_kb, cells)),
        "charged": charged_kb(server),
        "kernel": meminfo_kb("Slab", "KernelStack", "PageTables"),
    }


def show_cost(what, before, after, count):
    each = {where: (after[where] - before[where]) / count for where in before}
    claim(f"{what}: airlockd, RSS", f"{each['server']:.1f} KiB a stream", f"< {SERVER_KB} KiB", each["server"] < SERVER_KB)
    claim(f"{what}: launcher, RSS", f"{each['launcher']:.1f} KiB a stream", f"< {LAUNCHER_KB} KiB", each["launcher"] < LAUNCHER_KB)
    print(f"    beside these: init and bash {each['programs']:.0f} KiB (Pss), the job's cgroup {each['charged']:.0f} KiB (bash, and"
          f" kernel memory for it), the whole kernel {each['kernel']:.0f} KiB (slab, stacks, page tables)", flush=True)


def idle_streams(server, count, seconds):
    clients = Clients(server.address)
    clients.all("lost")  # they are up
    begin = server.possessions()
    marks = [memory(server)]
    errors = []
    started = time.monotonic()
    for terminal in (False, True):
        _, wrong = clients.all("open", count // 2 // CLIENTS, IDLE, "bash", terminal, 64)
        errors += wrong
        time.sleep(2)  # threads and heaps settle
        marks.append(memory(server))
    took = time.monotonic() - started
    count = count // 2 // CLIENTS * CLIENTS * 2
    claim(f"{count} idle streams, half with terminals: ready", f"{count - len(errors)} after {took:.0f} s", "all", not errors)
    show_cost("each with pipes", marks[0], marks[1], count // 2)
    show_cost("each with a terminal", marks[1], marks[2], count // 2)
    cpu = cpu_seconds(server)
    time.sleep(seconds)
    cpu = cpu_seconds(server) - cpu
    _, lost = clients.all("lost")
    claim(f"lost after {seconds} s", f"{len(lost)}, {cpu / seconds * 100:.1f} % of a CPU", "none", not lost)
    delays, errors = clients.all("answer")
    figure = f"{len(delays)}, all at once within {max(delays, default=0):.0f} ms"
    claim("answered a key", figure, "all", len(delays) == count and not errors)
    done, errors = clients.all("finish")
    claim("succeeded at the end of their input", f"{len(done)}", "all", len(done) == count and not errors)
    clients.close()
    show_left(server, begin)


def cpu_seconds(server):
    ticks = 0
    for pid in (server.pid, server.launcher):
        fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def show_left(server, begin):
    """Threads are kept, for the next jobs."""
    after = server.settle(begin)
    more = {k: after[k] - begin[k] for k in after if after[k] > begin[k] and k != "threads"}
    claim("left of them", ", ".join(f"{n} {what}" for what, n in more.items()) or "nothing", "nothing", not more)


def busy_streams(server, count, seconds, what, options):
    clients = Clients(server.address, options)
    begin = server.possessions()
    writes_s = WARM_UP_S + seconds + WARM_UP_S
    _, errors = clients.all("open", count // CLIENTS, BUSY % writes_s, "python", False, 1)
    count = count // CLIENTS * CLIENTS
    claim(f"{count} busy streams: ready", f"{count - len(errors)}", "all", not errors)
    begin_s = time.monotonic() + WARM_UP_S
    sizes, errors = clients.all("flood", begin_s, begin_s + seconds)
    claim("ended well", f"{len(sizes)}", "all", len(sizes) == count and not errors)
    if sizes:
        median = statistics.median(sizes)
        rate = sum(sizes) / seconds / (1 << 20)
        figure = f"{min(sizes) / (1 << 20):.1f} to {max(sizes) / (1 << 20):.1f} MiB, median {median / (1 << 20):.1f}"
        claim(f"{what}: each in {seconds} s, {rate:.0f} MiB/s", figure, "least >= half of median", min(sizes) >= HALF * median)
    clients.close()
    show_left(server, begin)
