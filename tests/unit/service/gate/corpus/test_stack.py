import unittest


class Stack:
    def __init__(self):
        self._items = []

    def push(self, item):
        self._items.append(item)

    def pop(self):
        if not self._items:
            raise IndexError("pop from empty stack")
        return self._items.pop()


class StackTest(unittest.TestCase):
    def test_pop_returns_last(self):
        s = Stack()
        s.push("a")
        s.push("b")
        self.assertEqual(s.pop(), "b")

    def test_pop_empty(self):
        with self.assertRaisesRegex(IndexError, r"empty\s+stack"):
            Stack().pop()


if __name__ == "__main__":
    unittest.main(argv=["test_stack.py", "-v"])
