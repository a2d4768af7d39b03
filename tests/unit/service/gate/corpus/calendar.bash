year=2024
is_leap() { (( $1 % 4 == 0 && ($1 % 100 != 0 || $1 % 400 == 0) )); }
if is_leap "$year"; then echo "$year: 366"; else echo "$year: 365"; fi
for m in 01 02 12; do date -d "$year-$m-01 12:30" '+%b %H:%M' 2>/dev/null || echo "$m"; done
