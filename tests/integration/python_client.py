"""A caller in Python, with stubs that stock tools made, against a running airlockd.

usage: python_client.py FOLDER-OF-STUBS ADDRESS

Prints `ok   NAME` or `FAIL NAME` for each check, as tests/support/check.sh does; exits 1 if one
failed.
"""

import queue
import signal
import sys
import time
import traceback

sys.path.insert(0, sys.argv[1])

import grpc
from airlock.v1 import execution_pb2 as pb
from airlock.v1 import execution_pb2_grpc as pb_grpc

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def run(stub, code, language="bash", timeout=30, metadata=None, **fields):
    request = pb.RunRequest(code=code.encode(), language=language, **fields)
    return stub.Run(request, timeout=timeout, metadata=metadata).result


def assert_ended(result, status, reason):
    assert (result.status, result.reason) == (status, reason), result


def assert_succeeded(result, stdout=None):
    assert_ended(result, pb.JOB_STATUS_SUCCEEDED, pb.REASON_EXIT)
    assert result.WhichOneof("exit") == "exit_code" and result.exit_code == 0, result
    assert stdout is None or result.stdout == stdout, result


def assert_refused(code, text, call):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, error
        assert text in error.details(), error
    else:
        raise AssertionError(f"the call succeeded; it should fail with {code}")


class Stream:
    """A Stream call that the test drives from one thread."""

    def __init__(self, stub, code=None, language="bash", timeout=30, **fields):
        self.requests = queue.SimpleQueue()
        if code is not None:
            request = pb.RunRequest(code=code.encode(), language=language, **fields)
            self.send(start=pb.StreamStart(request=request))
        self.call = stub.Stream(iter(self.requests.get, None), timeout=timeout)
        self.responses = []
        self.stdout = b""

    def send(self, **event):
        self.requests.put(pb.StreamRequest(**event))

    def half_close(self):
        self.requests.put(None)

    def next(self):
        response = next(self.call)
        self.responses.append(response)
        self.stdout += response.stdout
        return response

    def until_stdout(self, text):
        while text not in self.stdout:
            self.next()

    def to_result(self):
        for response in self.call:
            self.responses.append(response)
            self.stdout += response.stdout
        return self.responses[-1].result


@check
def four_languages(stub):
    assert_succeeded(run(stub, "print(6 * 7)", "python"), b"42\n")
    assert_succeeded(run(stub, "console.log(6 * 7)", "javascript"), b"42\n")
    assert_succeeded(run(stub, "const n: number = 42; console.log(n)", "typescript"), b"42\n")
    assert_succeeded(run(stub, "echo $((6 * 7))", "bash"), b"42\n")


@check
def list_backends(stub):
    backends = {b.name: b for b in stub.ListBackends(pb.ListBackendsRequest()).backends}
    native = backends["native"]
    assert native.available and native.is_default and not native.unavailable_reason, native
    assert {"netns", "seccomp", "cgroup_memory"} <= set(native.isolation), native
    assert {"stream", "stdin", "artifacts"} <= set(native.capabilities), native
    names = {language.name for language in native.languages}
    assert {"python", "javascript", "typescript", "bash"} <= names, native
    assert not backends["local"].available and backends["local"].unavailable_reason, backends


@check
def what_a_program_gets(stub):
    result = run(
        stub,
        'cat "$AIRLOCK_INPUTS" data/in.bin -; echo "$GREETING $1"; pwd',
        inputs_json='{"b": 1, "a": [2]}',
        files=[pb.SandboxFile(path="data/in.bin", content=b"\xff\x00")],
        env={"GREETING": "hello"},
        args=["world"],
        stdin=b"\x80in\n",
    )
    assert_succeeded(result)
    inputs, rest = result.stdout.split(b"}", 1)
    assert inputs == b'{"a":[2],"b":1', result
    assert rest.lstrip(b"\n") == b"\xff\x00\x80in\nhello world\n/sandbox\n", result


THREE_FILES = "mkdir -p out; printf 1 >out/a; printf 22 >out/b; chmod 700 out/b; ln -s a out/c; exit 3"


def assert_three_files(result):
    assert_ended(result, pb.JOB_STATUS_FAILED, pb.REASON_EXIT)
    found = [(a.path, a.content, a.mode, a.truncated) for a in result.artifacts]
    assert found == [("out/a", b"1", 0o644, False), ("out/b", b"22", 0o700, False)], result
    assert result.artifacts_omitted == 1, result


@check
def artifacts(stub):
    result = run(stub, THREE_FILES, artifacts=["out/**"])
    assert_three_files(result)
    record = stub.GetJob(pb.GetJobRequest(job_id=result.job_id)).job.result
    assert not record.artifacts and record.artifacts_omitted == 1, record
    assert_three_files(Stream(stub, THREE_FILES, artifacts=["out/**"]).to_result())
    result = run(
        stub,
        "head -c 2000000 /dev/zero >a; head -c 2000000 /dev/zero >b; echo c >c",
        artifacts=["?"],
        quotas=pb.Quotas(artifact_bytes=3 << 20),
    )
    assert [(a.path, len(a.content), a.truncated) for a in result.artifacts] == [
        ("a", 2000000, False),
        ("b", (3 << 20) - 2000000, True),
    ], [(a.path, len(a.content), a.truncated) for a in result.artifacts]
    assert result.artifacts_omitted == 1


# With every default at its limit, in a client that takes no larger message than 4 MiB.
@check
def a_full_reply_fits(stub):
    code = "head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2\n"
    code += "d=$(printf 'd%.0s' {1..240}); mkdir -p $d/$d/$d; for i in {1..300}; do : >$d/$d/$d/$i; done\n"
    code += "head -c 1048576 /dev/zero >a"
    result = run(stub, code, artifacts=["a", "**/*"])
    assert_succeeded(result)
    assert len(result.artifacts) == 256 and len(result.artifacts[0].content) == 1 << 20


@check
def artifacts_from_the_cache(stub):
    fields = dict(artifacts=["a"], tenant_id="artifacts")
    first = run(stub, "date +%N >a", **fields)
    again = run(stub, "date +%N >a", **fields)
    assert_succeeded(again)
    assert not first.cached and again.cached, again
    assert again.artifacts == first.artifacts and len(again.artifacts) == 1, again
    small = run(stub, "date +%N >a", quotas=pb.Quotas(artifact_bytes=3), **fields)
    assert not small.cached and small.artifacts[0].truncated, small
    other = run(stub, "date +%N >a", artifacts=["b"], tenant_id="artifacts")
    assert not other.cached and not other.artifacts, other


@check
def what_a_result_says(stub):
    result = run(stub, "echo out; echo err >&2; exit 7", "bash")
    assert_ended(result, pb.JOB_STATUS_FAILED, pb.REASON_EXIT)
    assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 7), result
    assert len(result.job_id) == 16 and set(result.job_id) <= set("0123456789abcdef"), result
    assert result.backend == "native" and result.language.startswith("bash@"), result
    assert result.duration_ms > 0 and result.memory_peak_mb > 0, result
    assert result.effective_quotas.memory_mb == 256, result
    assert "seccomp" in result.isolation, result


@check
def no_code_at_all(stub):
    for language in ("python", "javascript", "typescript", "bash"):
        assert_succeeded(run(stub, "", language), b"")


@check
def a_signal(stub):
    result = run(stub, "kill -SEGV $$", "bash")
    assert_ended(result, pb.JOB_STATUS_FAILED, pb.REASON_SIGNAL)
    assert result.term_signal == signal.SIGSEGV, result


@check
def limits(stub):
    result = run(stub, "echo first; sleep 60", quotas=pb.Quotas(wall_seconds=0.5))
    assert_ended(result, pb.JOB_STATUS_TIMEOUT, pb.REASON_LIMIT)
    assert result.limit_hit == pb.LIMIT_WALL and result.stdout == b"first\n", result
    result = run(stub, "while :; do :; done", quotas=pb.Quotas(cpu_seconds=0.3))
    assert_ended(result, pb.JOB_STATUS_TIMEOUT, pb.REASON_LIMIT)
    assert result.limit_hit == pb.LIMIT_CPU, result
    result = run(stub, "x = bytearray(10**9)", "python", quotas=pb.Quotas(memory_mb=64))
    assert_ended(result, pb.JOB_STATUS_FAILED, pb.REASON_LIMIT)
    assert result.limit_hit == pb.LIMIT_MEMORY, result
    result = run(stub, "yes", quotas=pb.Quotas(output_bytes=1000))
    assert_ended(result, pb.JOB_STATUS_FAILED, pb.REASON_LIMIT)
    assert result.limit_hit == pb.LIMIT_OUTPUT and result.stdout == b"y\n" * 500, result
    assert result.stdout_truncated and not result.stderr_truncated, result


@check
def a_compile_error(stub):
    result = run(stub, "const n: number = ;", "typescript")
    assert_ended(result, pb.JOB_STATUS_FAILED, pb.REASON_COMPILE)
    assert result.compile.exit_code != 0 and b"main.ts:1" in result.compile.output, result
    result = run(stub, "console.log(1)", "typescript")
    assert_succeeded(result, b"1\n")
    assert result.HasField("compile") and result.compile.exit_code == 0, result


@check
def the_deadline_shortens_the_wall_limit(stub):
    result = run(stub, "echo first; sleep 60", timeout=1.5)
    assert_ended(result, pb.JOB_STATUS_TIMEOUT, pb.REASON_LIMIT)
    assert result.limit_hit == pb.LIMIT_WALL and result.stdout == b"first\n", result


@check
def a_stream_is_live(stub):
    stream = Stream(stub, "import sys\nfor l in sys.stdin: print(l.upper(), end='', flush=True)", "python")
    for line in (b"one\n", b"two\n"):
        stream.send(stdin=line)
        stream.until_stdout(line.upper())
    stream.send(stdin_eof=True)
    assert_succeeded(stream.to_result(), b"")
    assert stream.stdout == b"ONE\nTWO\n", stream.stdout
    sequence = [response.sequence for response in stream.responses]
    assert sequence == list(range(1, len(sequence) + 1)), sequence
    kinds = [response.WhichOneof("event") for response in stream.responses]
    assert kinds.count("result") == 1 and kinds[-1] == "result", kinds
    assert len({response.job_id for response in stream.responses}) == 1, stream.responses


def assert_told_in_order(stream, end):
    """The events of a whole stream: numbers, times and kinds are as they have to be."""
    events = stream.responses
    sequence = [event.sequence for event in events]
    assert sequence == list(range(1, len(events) + 1)), sequence
    times = [event.timestamp.ToNanoseconds() for event in events]
    assert times == sorted(times), times
    statuses = [event.status for event in events if event.WhichOneof("event") == "status"]
    assert statuses == [pb.JOB_STATUS_PENDING, pb.JOB_STATUS_RUNNING, end], statuses
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[-2:] == ["status", "result"] and kinds.count("result") == 1, kinds
    assert events[-1].result.status == end, events[-1]
    received = [event.stdin_received for event in events]
    assert received == sorted(received), received


@check
def a_stream_of_every_backend(stub):
    backends = stub.ListBackends(pb.ListBackendsRequest()).backends
    names = [b.name for b in backends if b.available and {"stream", "stdin", "signals"} <= set(b.capabilities)]
    assert "native" in names, names
    for name in names:
        stream = Stream(stub, 'echo ready; read -r a; echo "$a" >&2; cat; exit 3', backend=name)
        stream.until_stdout(b"ready\n")
        for piece in (b"a", b"b\n", b"\x00\xff"):
            stream.send(stdin=piece)
        stream.until_stdout(b"\x00\xff")
        stream.send(stdin=b"rest")
        stream.send(stdin_eof=True)
        result = stream.to_result()
        assert result.backend == name and result.exit_code == 3, result
        assert stream.stdout == b"ready\n\x00\xffrest", (name, stream.stdout)
        assert b"".join(event.stderr for event in stream.responses) == b"ab\n", name
        assert stream.responses[-1].stdin_received == 9, (name, stream.responses[-1])
        assert_told_in_order(stream, pb.JOB_STATUS_FAILED)
        job = stub.GetJob(pb.GetJobRequest(job_id=result.job_id)).job
        times = [job.created_at, job.started_at, job.finished_at]
        times = [time.ToNanoseconds() for time in times]
        assert times == sorted(times) and times[0] > 0, (name, job)


@check
def a_half_close_is_the_end_of_input(stub):
    stream = Stream(stub, "cat; echo done")
    stream.send(stdin=b"text\n")
    stream.half_close()
    assert_succeeded(stream.to_result())
    assert stream.stdout == b"text\ndone\n", stream.stdout


@check
def a_stream_takes_signals(stub):
    stream = Stream(stub, "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.05; done")
    stream.until_stdout(b"ready\n")
    stream.send(signal=int(signal.SIGUSR1))
    result = stream.to_result()
    assert stream.stdout == b"ready\ncaught\n" and result.exit_code == 3, (stream.stdout, result)


@check
def kill_and_get_job(stub):
    stream = Stream(stub, "echo ready; sleep 60 & setsid sleep 60", metadata={"ticket": "7"})
    stream.until_stdout(b"ready\n")
    job_id = stream.responses[0].job_id
    job = stub.GetJob(pb.GetJobRequest(job_id=job_id)).job
    assert job.status == pb.JOB_STATUS_RUNNING and job.metadata["ticket"] == "7", job
    answer = stub.Kill(pb.KillRequest(job_id=job_id))
    assert answer.killed and answer.status == pb.JOB_STATUS_KILLED, answer
    assert_ended(stream.to_result(), pb.JOB_STATUS_KILLED, pb.REASON_CANCELLED)
    assert not stub.Kill(pb.KillRequest(job_id=job_id)).killed
    job = stub.GetJob(pb.GetJobRequest(job_id=job_id)).job
    assert job.status == pb.JOB_STATUS_KILLED and not job.result.stdout, job
    assert_refused(
        grpc.StatusCode.NOT_FOUND,
        "",
        lambda: stub.GetJob(pb.GetJobRequest(job_id=job_id, tenant_id="another")),
    )


@check
def a_cancelled_call_kills_its_job(stub):
    stream = Stream(stub, "echo ready; sleep 60")
    stream.until_stdout(b"ready\n")
    job_id = stream.responses[0].job_id
    stream.call.cancel()
    deadline = time.monotonic() + 1
    while stub.GetJob(pb.GetJobRequest(job_id=job_id)).job.status != pb.JOB_STATUS_KILLED:
        assert time.monotonic() < deadline, "the job lives on"
        time.sleep(0.02)


@check
def the_tenant_of_the_metadata(stub):
    result = run(stub, "echo", metadata=[("airlock-tenant", "team-a")])
    job = stub.GetJob(pb.GetJobRequest(job_id=result.job_id, tenant_id="team-a")).job
    assert job.tenant_id == "team-a", job
    assert_refused(
        grpc.StatusCode.INVALID_ARGUMENT,
        "tenant",
        lambda: run(stub, "echo", metadata=[("airlock-tenant", "team-a")], tenant_id="team-b"),
    )


@check
def malformed_requests(stub):
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    assert_refused(invalid, "code", lambda: run(stub, "x" * (1 << 20) + "x"))
    for seconds in (-1.0, float("nan"), float("inf"), 1e300):
        quotas = pb.Quotas(wall_seconds=seconds)
        assert_refused(invalid, "wall_seconds", lambda: run(stub, "echo", quotas=quotas))
    for path in ("../x", "/x", "", "a//b", "a/../b", "x" * 256):
        files = [pb.SandboxFile(path=path)]
        assert_refused(invalid, "files", lambda: run(stub, "echo", files=files))
    assert_refused(invalid, "inputs_json", lambda: run(stub, "echo", inputs_json="[1]"))
    assert_refused(invalid, "workdir", lambda: run(stub, "echo", workdir="/etc"))
    assert_refused(invalid, "job_id", lambda: stub.GetJob(pb.GetJobRequest(job_id="xyz")))


@check
def what_there_is_not(stub):
    missing, lacking = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION
    assert_refused(missing, "nowhere", lambda: run(stub, "echo", backend="nowhere"))
    assert_refused(missing, "", lambda: stub.GetJob(pb.GetJobRequest(job_id="0" * 16)))
    assert_refused(missing, "", lambda: stub.Kill(pb.KillRequest(job_id="0" * 16)))
    assert_refused(lacking, "cobol", lambda: run(stub, "echo", "cobol"))
    assert_refused(lacking, "unsafe", lambda: run(stub, "echo", backend="local"))
    egress = pb.EgressAllowlist(policy=pb.NETWORK_POLICY_UNRESTRICTED)
    assert_refused(lacking, "egress", lambda: run(stub, "echo", egress=egress))


@check
def the_cache(stub):
    code = "echo $RANDOM $RANDOM"
    first = run(stub, code, tenant_id="cache-a")
    again = run(stub, code, tenant_id="cache-a")
    assert_succeeded(again, first.stdout)
    assert not first.cached and again.cached and again.cached_at.seconds > 0, again
    assert first.job_id != again.job_id and first.fingerprint == again.fingerprint, again
    assert again.cpu_seconds == first.cpu_seconds > 0, again
    missing = grpc.StatusCode.NOT_FOUND
    unknown = pb.GetJobRequest(job_id=again.job_id, tenant_id="cache-a")
    assert_refused(missing, "", lambda: stub.GetJob(unknown))
    off = run(stub, code, tenant_id="cache-a", cache_mode=pb.CACHE_MODE_OFF)
    assert not off.cached and not off.fingerprint, off
    fresh = run(stub, code, tenant_id="cache-a", cache_mode=pb.CACHE_MODE_REFRESH)
    assert not fresh.cached and fresh.stdout != first.stdout, fresh
    assert run(stub, code, tenant_id="cache-a").stdout == fresh.stdout
    assert not run(stub, code, tenant_id="cache-b").cached
    failing = [run(stub, "echo $RANDOM; exit 3", tenant_id="cache-a") for _ in range(2)]
    assert not failing[0].cached and not failing[1].cached, failing
    streamed = Stream(stub, code, tenant_id="cache-a")
    assert not streamed.to_result().cached and streamed.stdout != fresh.stdout


@check
def the_egress_gate(stub):
    code = "import urllib.request\nurllib.request.urlopen('https://Data.Example.com:8443/x')"
    blocked = run(stub, code, "python")
    assert_ended(blocked, pb.JOB_STATUS_EGRESS_BLOCKED, pb.REASON_EGRESS)
    assert "data.example.com" in blocked.error and "line 2" in blocked.error, blocked
    job = stub.GetJob(pb.GetJobRequest(job_id=blocked.job_id)).job
    assert job.status == pb.JOB_STATUS_EGRESS_BLOCKED, job
    assert_ended(Stream(stub, "curl https://example.com").to_result(),
                 pb.JOB_STATUS_EGRESS_BLOCKED, pb.REASON_EGRESS)
    result = run(stub, "print('http://127.0.0.1:80')  # http://example.com", "python")
    assert_succeeded(result)
    assert [f.host for f in result.egress_findings] == ["127.0.0.1"], result
    denied = grpc.StatusCode.PERMISSION_DENIED
    assert_refused(denied, "gate_mode", lambda: run(stub, "echo", gate_mode=pb.GATE_MODE_WARN))


@check
def the_quota(stub):
    def quota():
        return stub.GetQuota(pb.GetQuotaRequest(tenant_id="quota"))

    before = quota()
    assert (before.inflight, before.max_inflight) == (0, 8), before
    assert before.cpu_seconds_per_minute == before.cpu_seconds_remaining == 600, before
    sleepers = [Stream(stub, "echo ready; sleep 60", tenant_id="quota") for _ in range(8)]
    for stream in sleepers:
        stream.until_stdout(b"ready\n")
    busy = quota()
    assert busy.inflight == 8 and busy.cpu_seconds_remaining == 600 - 8 * 5, busy
    refused = run(stub, "echo", tenant_id="quota")
    assert_ended(refused, pb.JOB_STATUS_QUOTA_EXCEEDED, pb.REASON_QUOTA)
    assert refused.retry_after_ms > 0 and "8" in refused.error, refused
    assert_succeeded(run(stub, "echo", tenant_id="quota-of-another"))
    for stream in sleepers:
        stream.call.cancel()
    deadline = time.monotonic() + 2
    while quota().inflight > 0:
        assert time.monotonic() < deadline, quota()
        time.sleep(0.02)
    assert 590 < quota().cpu_seconds_remaining < 600, quota()


@check
def records_of_jobs(stub):
    tenant = "records"
    ids = [run(stub, f"echo {n}; exit {n % 2}", tenant_id=tenant).job_id for n in range(5)]

    def pages(**fields):
        request = pb.ListJobsRequest(tenant_id=tenant, page_size=2, **fields)
        while True:
            answer = stub.ListJobs(request)
            yield from answer.jobs
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token

    assert [job.job_id for job in pages()] == ids[::-1], list(pages())
    failed = list(pages(status=pb.JOB_STATUS_FAILED))
    assert [job.job_id for job in failed] == [ids[3], ids[1]], failed
    assert failed[0].result.exit_code == 1 and not failed[0].result.stdout, failed
    assert not stub.ListJobs(pb.ListJobsRequest(tenant_id="nobody-else")).jobs
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    forged = pb.ListJobsRequest(tenant_id=tenant, page_token="x")
    assert_refused(invalid, "page_token", lambda: stub.ListJobs(forged))
    large = pb.ListJobsRequest(tenant_id=tenant, page_size=1001)
    assert_refused(invalid, "page_size", lambda: stub.ListJobs(large))


@check
def wrong_streams(stub):
    def first_message(**event):
        stream = Stream(stub)
        stream.send(**event)
        stream.to_result()

    invalid = grpc.StatusCode.INVALID_ARGUMENT
    assert_refused(invalid, "", lambda: first_message(stdin=b"x"))
    assert_refused(invalid, "", lambda: first_message(start=pb.StreamStart()))
    stream = Stream(stub, "sleep 60")
    stream.send(start=pb.StreamStart(request=pb.RunRequest(code=b"echo", language="bash")))
    assert_refused(invalid, "", stream.to_result)


@check
def unknown_methods(stub, channel):
    call = channel.unary_unary("/airlock.v1.ExecutionService/Nothing")
    assert_refused(grpc.StatusCode.UNIMPLEMENTED, "", lambda: call(b"", timeout=5))


def main():
    failed = 0
    with grpc.insecure_channel(sys.argv[2]) as channel:
        stub = pb_grpc.ExecutionServiceStub(channel)
        for function in CHECKS:
            arguments = (stub, channel)[: function.__code__.co_argcount]
            name = "python: " + function.__name__.replace("_", " ")
            try:
                function(*arguments)
                print("ok  ", name, flush=True)
            except Exception:
                failed += 1
                print("FAIL", name, flush=True)
                traceback.print_exc(limit=-3, file=sys.stdout)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
