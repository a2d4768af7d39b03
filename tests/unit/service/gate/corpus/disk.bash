df -P | tail -n +2 | while read -r fs _ used avail pct mount; do
    [ "${pct%\%}" -lt 90 ] || echo "WARN: $mount at $pct ($fs)" >&2
done
du -sh -- */ 2>/dev/null | sort -rh | head -n 5 || echo 'no folders'
