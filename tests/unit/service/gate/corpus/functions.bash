log() { printf '[%(%H:%M:%S)T] %s\n' -1 "$*"; }
retry() {
    local n=$1 i; shift
    for ((i = 1; i <= n; i++)); do "$@" && return 0; log "try $i/$n failed"; done
    return 1
}
trap 'log "line $LINENO: status $?"' ERR
retry 2 false || log "gave up"
diff <(seq 3) <(seq 4) || true
