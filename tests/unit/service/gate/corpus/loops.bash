for i in {1..3}; do
    for ((j = 0; j < i; j++)); do
        printf '%s' "#"
    done
    echo " $((i << 1)):$((16#ff % i))"
done
n=0
while [ "$n" -lt 3 ]; do n=$((n + 1)); done
until [[ $n =~ ^0+$ ]]; do ((n--)) || true; done
