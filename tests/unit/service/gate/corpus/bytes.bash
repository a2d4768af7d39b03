printf '\x41\102\n' | od -An -tx1
esc=$'\e[1m' end=$'\e[0m'
echo "${esc}bold${end} 'single' \"double\" \$HOME \\ back"
head -c 16 /dev/urandom | sha256sum | cut -c1-8
