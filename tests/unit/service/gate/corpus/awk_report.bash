printf '%s\n' 'a 1' 'b 2' 'a 3' |
    awk 'BEGIN { OFS = ":" } { sum[$1] += $2 } END { for (k in sum) print k, sum[k] }' | sort
awk -F: '$3 >= 1000 && $7 !~ /nologin|false/ { printf "%-10s %s\n", $1, $6 }' /etc/passwd
