# shellcheck shell=bash
# Sourced by scripts that use Bazel: a Bazel server that the script started ends with the script,
# one that was there before goes on.

# In the workspace's root. Links of a build by another user, or into another output base, would make
# //... fail; each build makes its own again.
bazel_begin() {
    bazel_began=$(date +%s)
    find . -maxdepth 1 -type l -name 'bazel-*' -delete
}

bazel_end() {
    local pid
    pid=$(bazel info server_pid 2>/dev/null) || return 0
    [ "$(stat -c %Y "/proc/$pid")" -lt "$bazel_began" ] || bazel shutdown >/dev/null 2>&1
}
