#!/usr/bin/env bash
# A tool that starts jails and breaks while airlockd runs: its jobs fail and say why, no jails are
# made ahead for ever, and everything is well again once the tool is. PATH has airlock and airlockd.
# Needs root and bubblewrap.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/support/airlockd.sh
. "$root/tests/support/airlockd.sh"
# shellcheck source=tests/support/check.sh
. "$root/tests/support/check.sh"

readonly LEAST_JAILS=4 # that wait after a job

tool_folder=''

# The tool becomes a script with this one command.
tool_is() {
    printf '#!/bin/sh\n%s\n' "$1" >"$tool_folder/new"
    chmod 755 "$tool_folder/new"
    mv "$tool_folder/new" "$tool_folder/tool" # at once: jails may be starting
}

tool_works() {
    # shellcheck disable=SC2016 # for the tool's shell
    tool_is "exec $(type -P bwrap)"' "$@"'
}

# A job of its own each time: none of them comes from the cache.
job() {
    airlock run --backend bubblewrap -l bash -e "echo works # $RANDOM$RANDOM" 2>&1
}

jails() {
    children_of "$launcher_pid" | while read -r pid; do cat "/proc/$pid/cmdline" 2>/dev/null || true; done |
        tr '\0' '\n' | grep -c -- --unshare-pid || true
}

enough_jails() {
    [ "$(jails)" -ge $LEAST_JAILS ]
}

deaths() {
    grep -c 'a cell that was made ahead died' "$airlockd_dir/log" || true
}

makes_jails_ahead() {
    equal 'the output' "$(job)" works || return 1
    wait_until 10000 enough_jails || { echo "$(jails) jails wait" && return 1; }
}

# The ones that wait are good still: they started before it broke.
fails_and_says_so() {
    local said i failed=0
    tool_is 'echo broken today >&2; exit 3'
    for i in 1 2 3 4 5 6 7 8 9 10; do
        said=$(job) && equal "the output of $i" "$said" works && continue
        contains "what $i says" "$said" 'broken today' || return 1
        failed=$((failed + 1))
    done
    [ "$failed" -gt 0 ] || { echo 'none failed' && return 1; }
}

# What a job asks for is tried for a job; nothing is tried for nobody.
stops_trying() {
    local before now
    wait_until 5000 no_jails || { echo "$(jails) jails are left" && return 1; }
    before=$(deaths)
    sleep 1
    now=$(deaths)
    equal 'the cells that died while nobody asked' $((now - before)) 0
}

no_jails() {
    [ "$(jails)" = 0 ]
}

recovers() {
    tool_works
    equal 'the output' "$(job)" works || return 1
    wait_until 10000 enough_jails || { echo "$(jails) jails wait" && return 1; }
}

clean() {
    airlockd_clean
    [ -z "$tool_folder" ] || rm -rf -- "$tool_folder"
}

main() {
    [ "$(id -u)" = 0 ] || { echo 'this test needs root' >&2 && return 1; }
    trap clean EXIT
    tool_folder=$(mktemp -d /var/tmp/airlock-tool.XXXXXX)
    chmod 755 "$tool_folder"
    tool_works
    airlockd_configure '[cells]' \
        "system_paths = /usr /bin /lib /lib64 /etc/alternatives /etc/ld.so.cache $tool_folder" \
        '[bubblewrap]' "program = $tool_folder/tool"
    airlockd_launch
    check 'broken tool: before, jails are made ahead' makes_jails_ahead
    check 'broken tool: jobs fail and say what the tool said' fails_and_says_so
    check 'broken tool: nothing is made while nobody asks' stops_trying
    check 'broken tool: a repaired one is taken up' recovers
    check 'broken tool: airlockd ends and leaves nothing' airlockd_stop
    checks_passed
}

main
