# Found as "sitecustomize" by an interpreter that is started ahead of its program: waits for the
# program's arguments and environment, then leaves no trace of itself. The last thing that happens
# before the interpreter opens the program's file.
import os
import sys

START_FD = 63


def read_start():
    data = b""
    while len(data) < 11 or len(data) < int(data[:10]):
        part = os.read(START_FD, 65536)
        if not part:
            os._exit(125)  # whoever should have said it is gone
        data += part
    os.close(START_FD)
    return data[11:].split(b"\0")[:-1]


def start():
    words = [os.fsdecode(word) for word in read_start()]
    n = int(words[0])
    sys.argv += words[2 : 2 + n]
    sys.orig_argv += words[2 : 2 + n]
    for pair in words[2 + n :]:
        name, _, value = pair.partition("=")
        os.environ[name] = value


def forget():
    """True in the interpreter that waits, false in those that a program makes inside of it."""
    here = os.path.dirname(__file__)
    sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    del sys.modules["sitecustomize"]
    return os.environ.pop("PYTHONPATH", None) == here


waits = forget()
try:
    import sitecustomize  # the one that a program would have found
finally:
    if waits:
        start()
    globals().clear()  # else the functions would keep all this until the first collection
