git init -q repo && cd repo || exit 1
git config user.email "me@example.com"
git config user.name 'A. Tester'
echo 'x = 1' >main.py && git add main.py && git commit -qm "Add main.py: it's a start"
git log --format='%h %an <%ae> %s' -1
