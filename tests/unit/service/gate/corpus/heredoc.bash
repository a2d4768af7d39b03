name="world"
cat <<EOF >hello.txt
Hello, $name! It's $(date +%H:%M).
# not a comment
EOF
python3 - <<'PY'
import sys
print("lines:", sum(1 for _ in open("hello.txt")))
PY
cat <<-END
	indented
	END
rm -f hello.txt
