#!/usr/bin/env bash
# How airlockd starts, drains and dies, and what it leaves. PATH has airlock and airlockd. Needs
# root.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/support/airlockd.sh
. "$root/tests/support/airlockd.sh"
# shellcheck source=tests/support/check.sh
. "$root/tests/support/check.sh"

# Starts a job with processes of several kinds; waits until they run. $! is the stream.
start_job() {
    airlock stream --wall 60 -l bash -e "sleep 60 & setsid sleep 60 & echo ready; ${1:-sleep 60}" \
        >"$airlockd_dir/stream" 2>&1 </dev/null &
    wait_until 5000 grep -qs ready "$airlockd_dir/stream"
}

all_dead_in_a_second() {
    wait_until 1000 all_dead "$@" || {
        echo 'processes are left:' && ps -o pid,ppid,uid,stat,args -p "$(tr ' ' ',' <<<"$*")"
        return 1
    }
}

# Within a second, none of the processes and nothing of the instance is left.
gone_in_a_second() {
    all_dead_in_a_second "$@" || return 1
    wait_until 1000 airlockd_left_nothing ||
        { echo 'cgroups are left:' && ls -d "${airlockd_cgroups[@]}" 2>/dev/null && return 1; }
}

drains() {
    local code=0
    airlockd_launch
    start_job 'sleep 1; echo finished'
    kill -TERM "$airlockd_pid"
    wait $! || code=$?
    equal "the stream's exit code" "$code" 0 || return 1
    contains 'the output' "$(cat "$airlockd_dir/stream")" finished || return 1
    code=0
    wait "$airlockd_job" || code=$?
    equal "airlockd's exit code" "$code" 0 && gone_in_a_second "$airlockd_pid"
}

refuses_while_draining() {
    local code=0
    airlockd_launch
    start_job 'sleep 3'
    kill -TERM "$airlockd_pid"
    wait_until 1000 grep -q draining "$airlockd_dir/log"
    airlock run -l bash -e : >"$airlockd_dir/refused" 2>&1 || code=$?
    airlockd_stop
    equal 'the exit code' "$code" 125 &&
        contains 'the message' "$(cat "$airlockd_dir/refused")" UNAVAILABLE
}

# airlockd with the given arguments fails within five seconds and says PART.
refuses() {
    local code=0 said
    said=$(timeout 5 airlockd "${@:2}" 2>&1) || code=$?
    if [ "$code" = 0 ] || [ "$code" = 124 ]; then
        printf 'the exit code is %s\n%s\n' "$code" "$said"
        return 1
    fi
    contains 'the message' "$said" "$1"
}

second_instance() {
    airlockd_launch
    refuses 'another airlockd uses the data-dir' --config "$airlockd_dir/airlockd.conf" || return 1
    refuses "${AIRLOCK_SERVER##*:}" --listen "$AIRLOCK_SERVER" --data-dir "$airlockd_dir/data2" ||
        return 1
    airlock run -l bash -e : || return 1
    airlockd_stop
}

dead_launcher() {
    local code=0 processes
    airlockd_launch
    start_job
    mapfile -t processes < <(descendants_of "$airlockd_pid")
    kill -KILL "$launcher_pid"
    wait_until 1000 all_dead "$airlockd_pid" || { echo 'airlockd lives on' && return 1; }
    wait "$airlockd_job" || code=$?
    [ "$code" != 0 ] || { echo 'the exit code is 0' && return 1; }
    all_dead_in_a_second "${processes[@]}"
}

# With nobody left to tidy up, the next start does it.
next_start() {
    local processes leftovers
    airlockd_launch
    start_job
    mapfile -t processes < <(descendants_of "$airlockd_pid")
    kill -KILL "$airlockd_pid" "${processes[@]}"
    all_dead_in_a_second "${processes[@]}" || return 1
    mapfile -t leftovers < <(find "${airlockd_cgroups[@]}" -mindepth 1 -type d)
    [ "${#leftovers[@]}" -gt 0 ] || { echo 'nothing was left to remove' && return 1; }
    airlockd_launch
    ! ls -d "${leftovers[@]}" 2>/dev/null || return 1
    airlock run -l bash -e : && airlockd_stop
}

killed_in_mid_run() {
    local processes
    airlockd_launch
    start_job
    mapfile -t processes < <(descendants_of "$airlockd_pid")
    [ "${#processes[@]}" -ge 5 ] || { echo "only ${#processes[@]} processes" && return 1; }
    kill -KILL "$airlockd_pid"
    gone_in_a_second "${processes[@]}"
}

# What was recorded before a crash is there after it; what was running then has been interrupted.
records_survive() {
    local processes listed
    airlockd_launch
    airlock --tenant keeper run -l bash -e : || return 1
    airlock --tenant keeper stream -l bash -e 'echo ready; sleep 60' >"$airlockd_dir/stream" 2>&1 </dev/null &
    wait_until 5000 grep -qs ready "$airlockd_dir/stream" || return 1
    sleep 0.3 # records are written within 100 ms
    mapfile -t processes < <(descendants_of "$airlockd_pid")
    kill -KILL "$airlockd_pid"
    all_dead_in_a_second "$airlockd_pid" "${processes[@]}" || return 1
    airlockd_launch
    listed=$(airlock --tenant keeper --json jobs) || return 1
    if ! grep -q JOB_STATUS_SUCCEEDED <<<"$listed" || ! grep -q REASON_INTERRUPTED <<<"$listed"; then
        printf '%s\n' "$listed"
        return 1
    fi
    airlock --tenant keeper cache stats | grep -q works && airlockd_stop
}

# What cannot be read is set aside, not deleted, and no Run notices.
damaged_stores() {
    local store
    airlockd_launch
    airlock run -l bash -e : || return 1
    airlockd_stop || return 1
    for store in cache records; do
        head -c 20000 /dev/urandom >"$airlockd_dir/data/$store/data.mdb"
    done
    airlockd_launch
    airlock run -l bash -e : && airlock run -l bash -e : || return 1
    sleep 0.3 # records are written within 100 ms
    airlock jobs | grep -q succeeded && airlock cache stats | grep -q works || return 1
    for store in cache records; do
        compgen -G "$airlockd_dir/data/$store/data.mdb.*" || return 1
    done
    airlockd_stop
}

wrong_configuration() {
    local conf=$airlockd_dir/wrong.conf
    printf '[server]\nrun_slots = many\n' >"$conf"
    refuses "$conf:2: [server] run_slots" --config "$conf" || return 1
    refuses "$conf:2: [server] run_slots" --config "$conf" --check-config || return 1
    printf '[server]\nno_such_key = 1\n' >"$conf"
    refuses no_such_key --config "$conf" || return 1
    printf '[cells]\nuid_base = 1\n' >"$conf"
    refuses "$conf:2: [cells]" --config "$conf" --check-config || return 1
    refuses /nonexistent --config /nonexistent || return 1
    refuses --nonsense --nonsense
}

good_configuration() {
    airlockd --config "$root/service/airlockd.example.conf" --check-config
}

local_backend() {
    local dir=$airlockd_dir
    airlockd_configure '[local]' 'allow_unsafe = yes'
    as_root rm -rf "$dir"
    airlockd_launch
    airlock run --backend local -l bash -e 'echo ready' || return 1
    airlockd_stop
}

unix_socket() {
    sed -i 's|^listen = .*|listen = unix:/tmp/airlock-test.'$$'.sock|' "$airlockd_dir/airlockd.conf"
    airlockd_launch
    equal 'the address' "$AIRLOCK_SERVER" "unix:/tmp/airlock-test.$$.sock" || return 1
    equal 'the mode' "$(stat -c %a "${AIRLOCK_SERVER#unix:}")" 666 || return 1
    airlock run -l bash -e : || return 1
    airlockd_stop
}

# One check, and no airlockd left for the next.
life() {
    check "life: $1" "$2"
    airlockd_kill
}

main() {
    [ "$(id -u)" = 0 ] || { echo 'this test needs root' >&2 && return 1; }
    trap airlockd_clean EXIT
    airlockd_configure
    life 'SIGTERM lets a running job end' drains
    life 'while draining, new jobs are refused' refuses_while_draining
    life 'a second instance on the data-dir or the port' second_instance
    life 'without its launcher airlockd ends within a second' dead_launcher
    life 'the next start removes what was left' next_start
    life 'kill -9 leaves no process and no cgroup' killed_in_mid_run
    life 'records survive kill -9' records_survive
    life 'damaged stores are set aside' damaged_stores
    life 'a wrong configuration' wrong_configuration
    life 'the example configuration' good_configuration
    life 'a unix socket' unix_socket
    life 'the local backend, when it is allowed' local_backend
    checks_passed
}

main
