#!/usr/bin/env python3
"""Counts words in files. Usage: args.py [--top N] FILE..."""
import argparse
import sys


def parse(argv):
    parser = argparse.ArgumentParser(prog="args.py", description=__doc__)
    parser.add_argument("files", nargs="*", default=["input.txt"])
    parser.add_argument("--top", type=int, default=10, metavar="N", help="show N words (default: 10)")
    parser.add_argument("--sep", default=":", help="key:value separator")
    return parser.parse_args(argv)


print(parse(sys.argv[1:]))
