"""Streams over a network that breaks: clients that attach again and again through a proxy with faults.

A schedule is what happens to one job, by a seed: read some, do nothing for a while, break the connection
in one way or another, attach after the last event seen. The program's output is known, so that each
schedule either heard all of it, in order and once, or says what was wrong.
"""

import hashlib
import queue
import random
import time

import grpc
from airlock.v1 import execution_pb2 as pb
from airlock.v1 import execution_pb2_grpc as pb_grpc

from proxy import Proxy

LINGER_SECONDS = 60  # unless the caller says
GIVE_UP_SECONDS = 120
# Little is under way to a reader that stalls, so that the server still has what a cut loses.
CHANNEL = [("grpc.http2.bdp_probe", 0), ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
# What a connection that broke may look like.
BROKEN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}


class Wrong(Exception):
    pass


class Follower:
    """Follows one job over any number of streams."""

    def __init__(self, proxy, stdin, linger_seconds):
        self.proxy, self.stdin, self.linger_seconds = proxy, stdin, linger_seconds
        self.job_id, self.sequence, self.received = "", 0, 0
        self.bytes, self.digest = 0, hashlib.sha256()
        self.result, self.statuses = None, []
        self.requests = self.channel = self.call = None
        self.attaches = 0

    def open(self, first):
        self.requests = queue.SimpleQueue()
        self.channel = grpc.insecure_channel(self.proxy.address, options=CHANNEL)
        self.requests.put(first)
        self.call = pb_grpc.ExecutionServiceStub(self.channel).Stream(iter(self.requests.get, None))

    def start(self, request):
        self.open(pb.StreamRequest(start=pb.StreamStart(request=request, linger_seconds=self.linger_seconds)))
        self.send_stdin()

    def attach(self):
        self.close()
        self.attaches += 1
        self.open(pb.StreamRequest(attach=pb.Attach(job_id=self.job_id, after_sequence=self.sequence)))

    def send_stdin(self):
        """All that the server has not got, in messages of odd sizes, and the end."""
        if self.stdin is None:
            return
        for at in range(self.received, len(self.stdin), 30011):
            self.requests.put(pb.StreamRequest(stdin=self.stdin[at : at + 30011]))
        self.requests.put(pb.StreamRequest(stdin_eof=True))

    def close(self):
        if self.call:
            self.call.cancel()
            self.requests.put(None)
            self.channel.close()
        self.call = None

    def hear(self, message):
        if message.WhichOneof("event") is None:
            if message.sequence != 0 or message.job_id != self.job_id:
                raise Wrong(f"a first answer of job {message.job_id}, sequence {message.sequence}")
            self.received = message.stdin_received
            self.send_stdin()
            return
        if message.sequence != self.sequence + 1:
            raise Wrong(f"event {message.sequence} after {self.sequence}")
        if self.result is not None:
            raise Wrong("an event after the result")
        self.job_id, self.sequence = message.job_id, message.sequence
        self.bytes += len(message.stdout)
        self.digest.update(message.stdout)
        if message.WhichOneof("event") == "status":
            self.statuses.append(message.status)
        if message.WhichOneof("event") == "result":
            self.result = message.result

    def read(self, events):
        """Hears so many events; False when the connection broke before."""
        try:
            for _ in range(events):
                self.hear(next(self.call))
                if self.result is not None:
                    break
            return True
        except StopIteration:
            raise Wrong("the call ended well, without a result") from None
        except grpc.RpcError as error:
            if error.code() not in BROKEN:
                raise Wrong(f"{error.code().name}: {error.details()}") from None
            return False


def one_fault(follower, proxy, dice):
    """Breaks the connection, or takes the job over from oneself."""
    kind = dice.choice(["reset", "close", "stall", "cancel", "take over", "none"])
    if kind == "stall":
        proxy.stall(True)
        time.sleep(dice.uniform(0, 0.2))
        proxy.stall(False) if dice.random() < 0.5 else proxy.cut(reset=True)
    elif kind == "take over":
        before, channel, requests = follower.call, follower.channel, follower.requests
        follower.call = None
        follower.attach()
        follower.read(1)
        requests.put(None)
        before.cancel()
        channel.close()
    elif kind != "none":
        follower.close() if kind == "cancel" else proxy.cut(reset=kind == "reset")


def make_job(dice):
    """A program, its standard input and what it prints."""
    size = dice.choice([1000, 300_000, 3_000_000, 3_000_000])
    if dice.random() < 0.3:
        stdin = dice.randbytes(min(size, 1_000_000))
        return "bash", b"cat", stdin, stdin
    # Lines of growing numbers, so that a shift would show.
    lines = size // 8 + 1
    code = b"import sys\nfor at in range(0, %d, 500):\n    sys.stdout.write(''.join('%%07d\\n' %% i for i in range(at, min(at + 500, %d))))\n" % (lines, lines)
    return "python", code, None, b"".join(b"%07d\n" % i for i in range(lines))


def follow(follower, proxy, dice, request):
    """To the end of the job."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    follower.start(request)
    while not follower.job_id:
        if not follower.read(1):
            raise Wrong("the first stream broke by itself")
    while follower.result is None:
        if time.monotonic() > deadline:
            raise Wrong(f"no result after {GIVE_UP_SECONDS} s")
        alive = follower.call is not None and follower.read(dice.choice([1, 2, 5, 20]))
        if alive and follower.result is None:
            one_fault(follower, proxy, dice)
        elif not alive:
            follower.attach()


def run_schedule(server, seed, linger_seconds=LINGER_SECONDS):
    """None, or what was wrong. Second: how often it attached."""
    dice = random.Random(seed)
    language, code, stdin, want = make_job(dice)
    proxy = Proxy(server)
    follower = Follower(proxy, stdin, linger_seconds)
    quotas = pb.Quotas(wall_seconds=GIVE_UP_SECONDS, cpu_seconds=60)
    try:
        follow(follower, proxy, dice, pb.RunRequest(code=code, language=language, quotas=quotas))
        if follower.digest.digest() != hashlib.sha256(want).digest():
            raise Wrong(f"{follower.bytes} bytes, not the {len(want)} of the program")
        if follower.statuses != [pb.JOB_STATUS_PENDING, pb.JOB_STATUS_RUNNING, pb.JOB_STATUS_SUCCEEDED]:
            raise Wrong(f"statuses {follower.statuses}: {follower.result.error}")
    except Wrong as wrong:
        return f"schedule {seed}, {language}, after {follower.attaches} attaches: {wrong}", follower.attaches
    finally:
        follower.close()
        proxy.close()
    return None, follower.attaches
