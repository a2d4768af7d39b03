# shellcheck shell=bash
# Named checks for test scripts that source this file. Each prints one line, `ok   NAME` or
# `FAIL NAME` with what the check said; tests/run counts these lines.

checks_failed=0
checks_log=$(mktemp)

# check NAME COMMAND...: passes when the command succeeds. What it prints is shown when it fails.
# The command runs in this shell, where `set -e` has no effect on it.
check() {
    local name=$1
    shift
    if "$@" >"$checks_log" 2>&1; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %s\n' "$name"
        sed 's/^/       /' "$checks_log"
        checks_failed=$((checks_failed + 1))
    fi
}

# For the end of a script: false when a check failed.
checks_passed() {
    rm -f "$checks_log"
    [ "$checks_failed" = 0 ]
}

# equal WHAT HAVE WANT
equal() {
    [ "$2" = "$3" ] || { printf '%s is "%s" and should be "%s"\n' "$1" "$2" "$3" && return 1; }
}

# contains WHAT TEXT PART
contains() {
    case $2 in
    *"$3"*) ;;
    *) printf '%s is "%s" and should contain "%s"\n' "$1" "$2" "$3" && return 1 ;;
    esac
}
