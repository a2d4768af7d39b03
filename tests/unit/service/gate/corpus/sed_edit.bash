text='version = "1.2.3"'
sed -E 's/"([0-9]+)\.([0-9]+)\.([0-9]+)"/"\1.\2.9"/; s#/usr/local#/opt#g' <<<"$text"
sed -n '/^#/!p' <<'IN' | sed -e "s/'//g" -e 's|//.*$||'
# comment
it's a line // trailing
IN
