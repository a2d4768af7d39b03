"""Resume over a network that breaks: `ok` or `FAIL` lines for tests/run.

usage: resume_client.py STUBS ADDRESS [SCHEDULES]
"""

import concurrent.futures
import os
import sys

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from resume import run_schedule

SEED = 20240
AT_ONCE = 4


def main():
    server = sys.argv[2]
    schedules = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda n: run_schedule(server, SEED + n), range(schedules)))
    wrong = [error for error, _ in done if error]
    attaches = sum(n for _, n in done)
    name = f"resume: {schedules} schedules of faults, {attaches} attaches: complete and in order"
    for error in wrong[:5]:
        print("    " + error)
    # A network without faults would prove nothing.
    good = not wrong and attaches >= schedules
    print(("ok   " if good else "FAIL ") + name)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
