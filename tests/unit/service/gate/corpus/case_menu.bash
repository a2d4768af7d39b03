choose() {
    local x=$(case $1 in y|Y) echo yes;; n) echo no;; *) echo "don't know";; esac)
    echo "$1 -> $x"
}
for a in y n '?'; do choose "$a"; done
echo `basename "/a/b c.txt" .txt`
