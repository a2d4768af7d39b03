#!/bin/bash -e
usage() { echo "usage: ${0##*/} [-v] [-o FILE] NAME..." >&2; exit "${1:-2}"; }
verbose=0 out=/dev/stdout
while getopts ':vo:h' opt -v -o x.log; do
    case $opt in
    v) verbose=1 ;;
    o) out=$OPTARG ;;
    h) usage 0 ;;
    :) echo "-$OPTARG needs a value" ;;
    *) usage ;;
    esac
done
echo "$verbose $out $#"
