#!/usr/bin/env bash
# The command line program against a real airlockd. PATH has airlock and airlockd. Needs root.
# shellcheck disable=SC2016 # the programs in quotes are for other shells
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/support/airlockd.sh
. "$root/tests/support/airlockd.sh"
# shellcheck source=tests/support/check.sh
. "$root/tests/support/check.sh"

# Runs airlock; leaves its output in $out, its messages in $err, its exit code in $code.
airlock_() {
    code=0
    airlock "$@" >out 2>err || code=$?
    out=$(cat out && printf x) && out=${out%x}
    err=$(cat err)
}

# ends CODE STDOUT ARGUMENT...: airlock with the arguments exits with CODE and prints STDOUT.
ends() {
    airlock_ "${@:3}"
    equal 'the exit code' "$code" "$1" && equal 'standard output' "$out" "$2"
}

# fails PART ARGUMENT...: airlock exits with 125 and says PART on standard error.
fails() {
    airlock_ "${@:2}"
    equal 'the exit code' "$code" 125 && contains 'standard error' "$err" "$1"
}

exit_codes() {
    check 'cli: success' ends 0 $'1\n' run -l python -e 'print(1)'
    check 'cli: the program'"'"'s exit code' ends 7 '' run -l bash -e 'exit 7'
    check 'cli: a signal is 128 + n' ends 139 '' run -l bash -e 'kill -SEGV $$'
    check 'cli: wall limit is 124' ends 124 $'a\n' run --wall 0.5 -l bash -e 'echo a; sleep 60'
    check 'cli: cpu limit is 124' ends 124 '' run --cpu 0.3 -l bash -e 'while :; do :; done'
    check 'cli: memory limit is 137' ends 137 '' run --memory 64 -l python -e 'x = bytearray(10**9)'
    check 'cli: stream has them too' ends 9 $'a\n' stream -l bash -e 'echo a; exit 9'
    check 'cli: a compile error' compile_error
}

compile_error() {
    airlock_ run -l typescript -e 'let n: number = ;'
    equal 'the exit code' "$code" 1 && contains 'standard error' "$err" 'main.ts:1'
}

output_limit() {
    airlock_ run -l bash -e yes
    equal 'the exit code' "$code" 137 && equal 'the length' "${#out}" 1048576
}

both_channels() {
    airlock_ run -l bash -e 'printf out; printf err >&2'
    equal 'standard output' "$out" out && equal 'standard error' "$err" err
}

bytes() {
    airlock run -l bash -e 'head -c 3 /dev/zero; printf "\xff\n"' >out
    equal 'standard output in hexadecimal' "$(od -An -tx1 out)" ' 00 00 00 ff 0a'
}

statistics() {
    airlock_ run --stats --memory 64 -l python -e 'x = bytearray(10**9)'
    contains 'standard error' "$err" 'memory limit (64 MiB)'
}

results() {
    check 'cli: output limit is 137, with what came before' output_limit
    check 'cli: both channels' both_channels
    check 'cli: output byte for byte' bytes
    check 'cli: --stats' statistics
}

programs() {
    printf 'import sys\nprint(sys.argv[1:])\n' >prog.py
    printf 'a file\n' >here.txt
    check 'cli: a file and arguments' ends 0 $'[\'a b\', \'--json\']\n' run prog.py -- 'a b' --json
    check 'cli: code from standard input' ends 0 $'hello\n' run -l bash - < <(echo 'echo hello')
    check 'cli: --file' ends 0 $'a file\n' run --file here.txt:sub/there.txt -l bash -e 'cat sub/there.txt'
    check 'cli: --env' ends 0 $'b=c\n' run --env A=b=c -l bash -e 'echo $A'
    check 'cli: --inputs' ends 0 '{"a":1}' run --inputs '{ "a": 1 }' -l bash -e 'cat "$AIRLOCK_INPUTS"'
    check 'cli: run --stdin' ends 0 $'text\n' run --stdin -l bash -e cat < <(echo text)
    check 'cli: run leaves standard input alone' ends 0 '' run -l bash -e cat < <(echo text)
    check 'cli: stream forwards standard input' ends 0 $'text\n' stream -l bash -e cat < <(echo text)
    check 'cli: the environment is clean' ends 0 '' run -l bash -e 'printenv AIRLOCK_SERVER SECRET; :'
}

json_of_run() {
    airlock_ run --json -l bash -e 'printf out; exit 3'
    python3 - "$code" "$out" <<'PYTHON'
import base64, json, sys
code, answer = int(sys.argv[1]), json.loads(sys.argv[2])
result = answer.get("result", answer)
assert code == 3, code
assert result["exit_code"] == 3 and result["status"] == "JOB_STATUS_FAILED", result
assert base64.b64decode(result["stdout"]) == b"out", result
PYTHON
}

json_of_stream() {
    airlock_ stream --json -l bash -e 'printf out' </dev/null
    python3 - "$out" <<'PYTHON'
import base64, json, sys
messages = [json.loads(line) for line in sys.argv[1].splitlines()]
assert b"".join(base64.b64decode(m.get("stdout", "")) for m in messages) == b"out", messages
assert messages[-1]["result"]["status"] == "JOB_STATUS_SUCCEEDED", messages
PYTHON
}

json_of_backends() {
    airlock_ backends --json
    python3 -c 'import json, sys
backends = json.loads(sys.argv[1])["backends"]
assert any(b["name"] == "native" and b["available"] for b in backends), backends' "$out"
}

three_files='mkdir d; echo one >a.txt; echo two >d/b.txt; echo three >c; chmod 750 c'

artifacts_below() {
    airlock_ "$1" --artifact '**/*.txt' --artifact c --out "$1" -l bash -e "$three_files" </dev/null
    equal 'the exit code' "$code" 0 && equal 'standard error' "$err" '' &&
        equal 'a.txt' "$(cat "$1/a.txt")" one && equal 'd/b.txt' "$(cat "$1/d/b.txt")" two &&
        equal 'the mode of c' "$(stat -c %a "$1/c")" 750 &&
        equal 'the number of files' "$(find "$1" -type f | wc -l)" 3
}

artifacts_here() {
    airlock_ run --stats --artifact 'new*' --artifact here.txt -l bash \
        -e 'echo hostile >here.txt; echo new >new.txt; exit 3'
    equal 'the exit code' "$code" 3 && equal 'here.txt' "$(cat here.txt)" 'a file' &&
        equal 'new.txt' "$(cat new.txt)" new &&
        contains 'standard error' "$err" 'here.txt: is there already' &&
        contains 'standard error' "$err" 'artifact new.txt: wrote 4 bytes'
}

artifact_lost() {
    airlock_ run --artifact here.txt -l bash -e 'echo hostile >here.txt'
    equal 'the exit code' "$code" 125 && equal 'here.txt' "$(cat here.txt)" 'a file'
}

artifact_behind_a_link() {
    mkdir -p linked && ln -sfn / linked/d
    airlock_ run --artifact '**/*.txt' --out linked -l bash -e "$three_files"
    equal 'the exit code' "$code" 125 && contains 'standard error' "$err" 'd/b.txt: refused' &&
        equal 'a.txt' "$(cat linked/a.txt)" one && [ ! -e /b.txt ]
}

artifacts_cut() {
    airlock_ run --artifact '*.big' --out cut -l bash -e 'truncate -s 20M 1.big; echo x >2.big'
    equal 'the exit code' "$code" 0 && contains 'standard error' "$err" 'cut after 1048576 bytes' &&
        equal 'the size' "$(stat -c %s cut/1.big)" 1048576 && [ ! -e cut/2.big ]
}

artifacts_in_json() {
    airlock_ run --json --artifact '**' -l bash -e "$three_files"
    python3 - "$out" <<'PYTHON'
import base64, json, sys
answer = json.loads(sys.argv[1])
artifacts = {a["path"]: a for a in answer.get("result", answer)["artifacts"]}
assert list(artifacts) == ["a.txt", "c", "d/b.txt", "main.sh"], artifacts
assert base64.b64decode(artifacts["d/b.txt"]["content"]) == b"two\n", artifacts
assert artifacts["c"]["mode"] == 0o750, artifacts
PYTHON
    [ ! -e a.txt ]
}

artifacts() {
    check 'cli: artifacts of run' artifacts_below run
    check 'cli: artifacts of stream' artifacts_below stream
    check 'cli: artifacts here leave files alone' artifacts_here
    check 'cli: an artifact that cannot be written' artifact_lost
    check 'cli: an artifact behind a link' artifact_behind_a_link
    check 'cli: artifacts beyond the limit' artifacts_cut
    check 'cli: artifacts in JSON' artifacts_in_json
}

json() {
    check 'cli: run --json' json_of_run
    check 'cli: stream --json, one document a line' json_of_stream
    check 'cli: backends --json' json_of_backends
}

errors() {
    check 'cli: an option that is not there' fails --nonsense run --nonsense -e 1
    check 'cli: a limit out of its range' fails memory run --memory 99999 -l bash -e :
    check 'cli: a language that is not there' fails cobol run -l cobol -e :
    check 'cli: a backend that is not there' fails nowhere run --backend nowhere -l bash -e :
    check 'cli: a glob that leads out' fails 'artifacts[1]' run --artifact a --artifact ../b -l bash -e :
    check 'cli: a backend without artifacts' fails capability run --backend echo --artifact a -l bash -e :
    check 'cli: hosts are refused' fails egress run --allow example.org -l bash -e :
    check 'cli: a job that is not there' fails NOT_FOUND kill 0000000000000000
    check 'cli: another tenant'"'"'s job' others_job
    check 'cli: a server that is not there' fails 127.0.0.1:1 --server 127.0.0.1:1 run -l bash -e :
}

# Output is there before the program ends, and nothing of a progress line where there is no terminal.
follows() {
    local code=0
    env --default-signal=INT airlock run --follow --stdin -l bash -e 'cat; echo ready >&2; sleep 60' \
        >out 2>err < <(echo text) &
    wait_until 5000 grep -qs ready err
    kill -INT $!
    wait $! || code=$?
    equal 'the exit code' "$code" 130 && equal 'standard output' "$(cat out)" text &&
        equal 'standard error' "$(cat err)" ready
}

follows_all() {
    airlock_ run --follow -l bash -e 'head -c 3000000 /dev/zero | tr "\0" x; exit 3'
    equal 'the exit code' "$code" 3 && equal 'the length' "${#out}" 3000000
}

json_of_follow() {
    airlock_ run --follow --json -l bash -e 'printf out; exit 6'
    equal 'the exit code' "$code" 6 && contains 'the first message' "$(head -n 1 out)" JOB_STATUS_PENDING &&
        contains 'the last message' "$(tail -n 1 out)" '"exit_code":6'
}

following() {
    check 'cli: run --follow' follows
    check 'cli: run --follow has no limit of output' follows_all
    check 'cli: run --follow --json' json_of_follow
    check 'cli: stream without --follow' fails 'not an option' stream --follow -l bash -e :
}

others_job() {
    airlock_ --tenant one run --json -l bash -e :
    fails NOT_FOUND --tenant two job "$(job_id_in out)"
}

job_id_in() {
    grep -m 1 -o '"job_id": *"[0-9a-f]*"' "$1" | grep -o '[0-9a-f]\{16\}'
}

# Starts a stream in the background: $! is its process; waits for its first output.
start_stream() {
    airlock stream --json --wall 60 -l bash -e 'echo ready; sleep 60' >messages 2>/dev/null </dev/null &
    wait_until 5000 grep -qs '"stdout"' messages
}

kill_a_job() {
    local code=0 job
    start_stream
    job=$(job_id_in messages)
    ends 0 "job $job: killed"$'\n' kill "$job" || return 1
    wait $! || code=$?
    equal "the stream's exit code" "$code" 137 &&
        contains 'the last message' "$(tail -n 1 messages)" JOB_STATUS_KILLED &&
        ends 0 "job $job: had ended before (killed)"$'\n' kill "$job"
}

# A signal to a foreground airlock ends its job.
interrupt() {
    local code=0 job
    # Without job control a shell's background processes ignore SIGINT: `env` undoes that.
    env --default-signal=INT airlock stream --json -l bash -e 'echo ready; sleep 60' \
        >messages 2>/dev/null </dev/null &
    wait_until 5000 grep -qs '"stdout"' messages
    job=$(job_id_in messages)
    kill -INT $!
    wait $! || code=$?
    equal 'the exit code' "$code" 130 && wait_until 1000 job_is_killed "$job"
}

job_is_killed() {
    airlock job --json "$1" | grep -q JOB_STATUS_KILLED
}

closed_output() {
    local code=0
    { airlock stream -l bash -e 'yes' </dev/null 2>/dev/null || code=$?; echo "$code" >code; } | head -n 1 >/dev/null
    [ "$(cat code)" != 0 ] || { echo 'exit code 0 for output that nobody read' && return 1; }
}

jobs() {
    check 'cli: kill' kill_a_job
    check 'cli: Ctrl-C kills the job' interrupt
    check 'cli: a reader that leaves ends the stream' closed_output
}

# --- jobs that outlive their streams ---

# numbered N: a program that prints N numbered lines of its standard input.
numbered() {
    printf 'import sys, time\nfor i in range(%s):\n    print(i, sys.stdin.readline().strip(), flush=True)\n    time.sleep(0.02)\n' "$1"
}

# A proxy whose connections break when it gets SIGUSR1: sets proxy_pid and proxy_address.
start_proxy() {
    rm -f proxy.address
    python3 "$root/tests/support/proxy.py" "$AIRLOCK_SERVER" proxy.address &
    proxy_pid=$!
    wait_until 5000 test -s proxy.address
    proxy_address=$(cat proxy.address)
}

resumes() {
    local code=0 stream
    start_proxy
    seq 1000 1099 | airlock --server "$proxy_address" stream --linger 30 --wall 60 -l python \
        -e "$(numbered 100)" >out 2>err &
    stream=$!
    for _ in 1 2 3 4 5; do
        sleep 0.2
        kill -USR1 "$proxy_pid"
    done
    wait "$stream" || code=$?
    kill "$proxy_pid"
    equal 'the exit code' "$code" 0 && seq 0 99 | paste -d ' ' - <(seq 1000 1099) | cmp - out
}

gives_up() {
    local code=0 stream
    start_proxy
    airlock --server "$proxy_address" stream --linger 1 --wall 60 -l bash -e 'echo ready; sleep 60' \
        >out 2>err </dev/null &
    stream=$!
    wait_until 5000 grep -qs ready out
    kill -USR2 "$proxy_pid" # and refuses new ones
    wait "$stream" || code=$?
    kill "$proxy_pid"
    equal 'the exit code' "$code" 125 && contains 'standard error' "$(cat err)" airlock:
}

# Starts a job that lingers and whose standard input does not end, waits for its first output and
# kills its client; sets `job`.
start_lingering() {
    [ -p open ] || mkfifo open
    airlock stream --json --linger 30 --wall 60 -l bash -e "$1" >messages 2>/dev/null 0<>open &
    wait_until 5000 grep -qs '"stdout"' messages
    job=$(job_id_in messages)
    kill -KILL $!
    wait $! 2>/dev/null || true
}

attaches() {
    local job
    start_lingering 'echo ready; sleep 0.5; echo done; exit 5'
    ends 5 $'ready\ndone\n' attach "$job" </dev/null && ends 5 $'ready\ndone\n' attach "$job" </dev/null
}

# PENDING, RUNNING and the first line are three events.
attaches_after() {
    local job
    start_lingering 'echo ready; read -r line; echo "$line"'
    ends 0 $'a line\n' attach --after 3 --stdin "$job" < <(echo 'a line') || return 1
    fails OUT_OF_RANGE attach --after 1000 "$job" </dev/null
}

takes_over() {
    local job code=0 first
    start_lingering 'echo ready; sleep 1; echo done'
    airlock attach "$job" >out 2>err </dev/null &
    first=$!
    wait_until 5000 grep -qs ready out
    ends 0 $'ready\ndone\n' attach "$job" </dev/null || return 1
    wait "$first" || code=$?
    equal 'the exit code of the first' "$code" 125 && contains 'its error' "$(cat err)" 'took over'
}

interrupt_lingering() {
    local code=0 job
    env --default-signal=INT airlock stream --json --linger 30 --wall 60 -l bash -e 'echo ready; sleep 60' \
        >messages 2>/dev/null </dev/null &
    wait_until 5000 grep -qs '"stdout"' messages
    job=$(job_id_in messages)
    kill -INT $!
    wait $! || code=$?
    equal 'the exit code' "$code" 130 && wait_until 1000 job_is_killed "$job"
}

lingering() {
    check 'cli: stream goes on after the connection broke' resumes
    check 'cli: stream gives up when there is none any more' gives_up
    check 'cli: attach' attaches
    check 'cli: attach after an event, with standard input' attaches_after
    check 'cli: attach takes over' takes_over
    check 'cli: Ctrl-C kills a job that lingers' interrupt_lingering
    check 'cli: attach to a job that is not there' fails NOT_FOUND attach 0000000000000000
}

main() {
    trap airlockd_clean EXIT
    airlockd_configure
    airlockd_launch
    mkdir "$airlockd_dir/work"
    cd "$airlockd_dir/work"
    export SECRET=never-to-be-seen
    exit_codes
    results
    programs
    artifacts
    json
    errors
    jobs
    following
    lingering
    check 'cli: airlockd ends and leaves nothing' airlockd_stop
    checks_passed
}

main
