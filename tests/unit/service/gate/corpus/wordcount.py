import collections
import string

TEXT = '''It was the best of times; it was the worst of times... "Don't panic," she said.'''
words = TEXT.lower().translate(str.maketrans("", "", string.punctuation)).split()
for word, n in collections.Counter(words).most_common(3):
    print(f"{word!r:>8}: {n:03d}")
