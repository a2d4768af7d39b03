import functools
import time


def timed(label="%s took %.3fs"):
    def wrap(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            start = time.perf_counter()
            try:
                return fn(*args, **kwargs)
            finally:
                print(label % (fn.__name__, time.perf_counter() - start) if False else fn.__qualname__)
        return inner
    return wrap


@timed()
def work(n): return sum(i * i for i in range(n))


print(work(1000))
