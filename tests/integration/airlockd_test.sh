#!/bin/bash
# airlockd as a process: its options, its lock, its end. Needs root.
# shellcheck disable=SC2317  # functions are called through check
set -u

airlockd=$1
airlock=$2
work=$(mktemp -d)
chmod 755 "$work"
daemon=
failed=0

cleanup() {
    [ -n "$daemon" ] && kill -KILL "$daemon" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

check() { # DESCRIPTION COMMAND...
    local what=$1
    shift
    if "$@"; then
        echo "ok: $what"
    else
        echo "FAILED: $what"
        cat "$work/log" 2>/dev/null
        failed=1
    fi
}

exits_with() { # STATUS COMMAND...
    local expected=$1
    shift
    "$@" >"$work/out" 2>&1
    local status=$?
    [ "$status" -eq "$expected" ] || {
        echo "status $status instead of $expected: $*"
        cat "$work/out"
        return 1
    }
}

start() { # OPTION...
    : >"$work/log"
    "$airlockd" --data-dir "$work/data" --listen 127.0.0.1:0 "$@" 2>"$work/log" &
    daemon=$!
    for _ in $(seq 600); do
        address=$(sed -n 's/.*listening on \(127[0-9.]*:[0-9]*\).*/\1/p' "$work/log")
        [ -n "$address" ] && return 0
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.05
    done
    return 1
}

ends_with() { # STATUS: the daemon, within 10 s
    local expected=$1
    for _ in $(seq 200); do
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.05
    done
    kill -0 "$daemon" 2>/dev/null && return 1
    wait "$daemon"
    local status=$?
    daemon=
    [ "$status" -eq "$expected" ]
}

says() { # TEXT: in the output of the last exits_with
    grep -q -- "$1" "$work/out"
}

runs_echo() {
    [ "$("$airlock" run --server "$address" --backend echo -l python -e 'print(1)')" = "print(1)" ]
}

job_in_background() { # SECONDS: a job that lasts so long
    "$airlock" stream --server "$address" -l bash -e "echo started; sleep $1; echo over" \
        --wall 60 >"$work/job" 2>&1 </dev/null &
    job=$!
    for _ in $(seq 200); do
        grep -q started "$work/job" && return 0
        sleep 0.05
    done
    return 1
}

# --- options ---
check "--help" exits_with 0 "$airlockd" --help
check "--version" exits_with 0 "$airlockd" --version
check "an unknown option" exits_with 2 "$airlockd" --no-such-option
check "  is named" says --no-such-option
check "a missing value" exits_with 2 "$airlockd" --listen
check "a bad address" exits_with 2 "$airlockd" --listen nowhere
check "a missing file" exits_with 2 "$airlockd" --config "$work/none" --check-config
printf '[server]\nno_such_key = 1\n' >"$work/bad.conf"
check "a bad file" exits_with 2 "$airlockd" --config "$work/bad.conf" --check-config
check "  is named with its line" says bad.conf:2
check "a good configuration" exits_with 0 "$airlockd" --check-config
printf '[server]\ndefault_backend = none\n' >"$work/bad.conf"
check "an unknown default backend" exits_with 2 "$airlockd" --config "$work/bad.conf" \
    --data-dir "$work/data" --listen 127.0.0.1:0

# --- one instance, one port ---
check "start" start
check "serves" runs_echo
check "is not root" grep -q '^Uid:[[:space:]]*[1-9]' "/proc/$daemon/status"
check "has no capability" grep -q '^CapEff:[[:space:]]*0000000000000000' "/proc/$daemon/status"
check "cannot gain any" grep -q '^NoNewPrivs:[[:space:]]*1' "/proc/$daemon/status"
check "the data-dir is private" [ "$(stat -c %a "$work/data")" = 700 ]
check "a second one on the data-dir" exits_with 1 "$airlockd" --data-dir "$work/data" \
    --listen 127.0.0.1:0
check "  is told why" says "another airlockd"
check "a second one on the port" exits_with 1 "$airlockd" --data-dir "$work/other" \
    --listen "$address"
check "  is told why" says "cannot listen on $address: Address already in use"

# --- draining ---
check "a job begins" job_in_background 2
kill -TERM "$daemon"
check "a drain lets it end" wait "$job"
check "  to its last word" grep -q over "$work/job"
check "a drain ends with 0" ends_with 0

check "start" start
check "a job begins" job_in_background 50
kill -TERM "$daemon"
sleep 0.3
kill -TERM "$daemon"
check "a second signal ends with 0 too" ends_with 0
wait "$job"
check "  and the job is killed, and says so" [ $? -eq 137 ]

# --- the launcher dies ---
check "start" start
read -r launcher _ <"/proc/$daemon/task/$daemon/children"
check "a job begins" job_in_background 50
before=${EPOCHREALTIME/./}
kill -KILL "$launcher"
check "without its launcher it ends with 1" ends_with 1
check "  within a second" [ $((${EPOCHREALTIME/./} - before)) -lt 1000000 ]
check "  and says why" grep -q "launcher has died" "$work/log"
wait "$job"

exit $failed
