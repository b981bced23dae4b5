# SPDX-License-Identifier: MIT
"""objects.py SEED: what Python programs do all day, with Python and C on the stack in turn."""

import ctypes
import functools
import json
import random
import re
import sys
import threading

sys.setrecursionlimit(5000)
choose = random.Random(int(sys.argv[1]))
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


class Link:
    """Its representation is as deep as the list is long: Python within C within Python."""

    def __init__(self, rest):
        self.rest = rest

    def __repr__(self):
        return "%r-" % (self.rest,)


class Trouble(Exception):
    pass


def tree(depth):
    if depth == 0:
        return {"name": "n%d" % choose.randrange(1000), "values": [choose.random() for _ in range(3)]}
    return {"depth": depth, "children": [tree(depth - 1) for _ in range(choose.randint(1, 3))]}


def throw(depth):
    text = "x" * (600 + depth)
    if depth == 0:
        raise Trouble(text)
    try:
        throw(depth - 1)
    finally:
        str(len(text)).encode()


def sort_in_c(numbers):
    array = (ctypes.c_int * len(numbers))(*numbers)
    library = ctypes.CDLL(None)
    library.qsort(array, len(numbers), 4, COMPARE(lambda a, b: len(str(a[0]) * 99) - len(str(b[0]) * 99)))


def work():
    for _ in range(12):
        json.loads(json.dumps(tree(4), indent=1))
        sorted(range(40), key=lambda n: "%s" % Link(n))
        re.sub("[a-m]+", lambda match: match.group().upper() * 60, "the quick brown fox " * 9)
        repr(functools.reduce(lambda rest, _: Link(rest), range(choose.randint(1, 60)), None))
        try:
            throw(choose.randint(1, 120))
        except Trouble:
            pass
        sort_in_c([choose.randrange(10**6) for _ in range(12)])


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
