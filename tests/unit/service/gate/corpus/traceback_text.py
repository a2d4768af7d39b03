import traceback

try:
    {}["missing"]
except KeyError as e:
    text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
    print(text.splitlines()[-1])
expected = 'File "main.py", line 4\nmain.py:4: KeyError\nsrc/util.c:120:9: warning'
print(expected.count(":"))
