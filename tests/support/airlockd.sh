# shellcheck shell=bash
# Starts, watches and stops an airlockd of one's own, for scripts that source this file. The caller
# puts airlockd and airlock on PATH, and calls airlockd_clean at its end (trap … EXIT).
#
# After airlockd_configure and airlockd_launch:
#   AIRLOCK_SERVER   its address, exported: airlock finds it there
#   airlockd_dir     temporary folder: airlockd.conf, data/, log
#   airlockd_pid     its process id
#   launcher_pid     that of its launcher

airlockd_dir='' airlockd_pid='' airlockd_job='' launcher_pid='' airlockd_cgroups=()

# Runs a command as root, through sudo where there is need.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -- "$@"
    fi
}

# Makes the folder with a configuration: the given lines, if any, which begin in [server].
# shellcheck disable=SC2120
airlockd_configure() {
    airlockd_dir=$(mktemp -d "${TMPDIR:-/tmp}/airlock.XXXXXX")
    chmod 755 "$airlockd_dir" # airlockd's user has to reach data/
    printf '%s\n' '[server]' 'listen = 127.0.0.1:0' "data_dir = $airlockd_dir/data" "$@" \
        >"$airlockd_dir/airlockd.conf"
}

# Starts it on that configuration and waits until it listens; with what it said when it did not.
airlockd_launch() {
    local deadline=$((SECONDS + 30)) line=''
    # shellcheck disable=SC2016 # for sh to expand: sudo's process is not airlockd's
    local run='echo $$ >"$1/pid" && exec "$2" --config "$1/airlockd.conf"'
    rm -f "$airlockd_dir/pid"
    : >"$airlockd_dir/log"
    as_root sh -c "$run" sh "$airlockd_dir" "$(type -P airlockd)" 2>>"$airlockd_dir/log" &
    airlockd_job=$!
    until line=$(grep -m 1 -o 'listening on [^"]*' "$airlockd_dir/log"); do
        if ! kill -0 $airlockd_job 2>/dev/null || [ "$SECONDS" -gt "$deadline" ]; then
            printf 'airlockd did not start:\n' >&2
            cat "$airlockd_dir/log" >&2
            return 1
        fi
        sleep 0.05
    done
    export AIRLOCK_SERVER=${line#listening on }
    airlockd_pid=$(cat "$airlockd_dir/pid")
    launcher_pid=$(children_of "$airlockd_pid")
    mapfile -t airlockd_cgroups < <(as_root find "/proc/$launcher_pid/fd" \
        -lname '/sys/fs/cgroup/*airlock-*' -printf '%l\n')
}

children_of() {
    cat /proc/"$1"/task/*/children 2>/dev/null | tr -s ' ' '\n'
}

# All processes below the given one.
descendants_of() {
    local child
    for child in $(children_of "$1"); do
        printf '%s\n' "$child"
        descendants_of "$child"
    done
}

now_ms() {
    printf '%s\n' $((${EPOCHREALTIME/[.,]/} / 1000))
}

# Waits until a command succeeds, for so many milliseconds.
wait_until() {
    local deadline_ms=$(($(now_ms) + $1))
    shift
    until "$@"; do
        [ "$(now_ms)" -lt "$deadline_ms" ] || return 1
        sleep 0.02
    done
}

# True when none of the processes is alive. One that exits (a zombie, or pid 1 of a namespace whose
# dead nobody has waited for yet) is not: it runs no code any more.
all_dead() {
    local pid line fields exiting=4 # PF_EXITING
    for pid; do
        line=$(cat "/proc/$pid/stat" 2>/dev/null) || continue
        read -ra fields <<<"${line##*) }" # state ppid pgrp session tty tpgid flags ...
        [ "${fields[0]}" = Z ] || [ $((fields[6] & exiting)) != 0 ] || return 1
    done
}

# True when neither the launcher nor a folder of the instance's cgroups is left.
airlockd_left_nothing() {
    local folder
    all_dead "$airlockd_pid" "$launcher_pid" || return 1
    for folder in "${airlockd_cgroups[@]}"; do
        [ ! -e "$folder" ] || return 1
    done
}

# Ends it with SIGTERM, if it has not ended; false when it did not end well, or left something.
airlockd_stop() {
    all_dead "$airlockd_pid" || as_root kill -TERM "$airlockd_pid"
    wait "$airlockd_job" && wait_until 2000 airlockd_left_nothing && airlockd_pid=''
}

airlockd_kill() {
    [ -z "$airlockd_pid" ] || all_dead "$airlockd_pid" || as_root kill -KILL "$airlockd_pid"
    airlockd_pid=''
}

# For the end of a script: kills what still runs, removes the folder.
airlockd_clean() {
    airlockd_kill || true
    [ -z "$airlockd_dir" ] || as_root rm -rf -- "$airlockd_dir"
}
