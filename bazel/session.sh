# shellcheck shell=bash
# Sourced by scripts that use Bazel: a Bazel server that the script started ends with the script,
# one that was there before goes on.

bazel_begin() {
    bazel_began=$(date +%s)
}

bazel_end() {
    local pid
    pid=$(bazel info server_pid 2>/dev/null) || return 0
    [ "$(stat -c %Y "/proc/$pid")" -lt "$bazel_began" ] || bazel shutdown >/dev/null 2>&1
}
