#!/bin/bash -e
# Copies changed files. Docs: https://www.gnu.org/software/bash/
set -euo pipefail

src=${1:-.}
dst=${2:-/tmp/backup-$(date +%Y%m%d)}
mkdir -p "$dst"
find "$src" -type f -newer "$src/.stamp" -print0 2>/dev/null |
    while IFS= read -r -d '' file; do
        printf 'copy %s\n' "${file#./}"
        cp -- "$file" "$dst/"
    done
