declare -A count
words=(apple pear "sweet plum" apple)
for w in "${words[@]}"; do count[$w]=$((${count[$w]:-0} + 1)); done
for w in "${!count[@]}"; do echo "${w// /_}=${count[$w]}"; done | sort
echo "${#words[@]} ${words[*]:1:2} ${words[-1]^^}"
