# SPDX-License-Identifier: MIT
"""forkcost.py: a forked child pays for what it does, not for what it might have inherited: the pages that
are mapped for it, against the same child without us. One that grows does not look through the table of
32 MiB, by which the leaves of the shadow heap are found, nor through what nobody wrote of a leaf: each page
of them would be a fault. And a child does much before it grows."""

from harness import bare, build, equal, fail, finish, scratch, traced

# Pairs of malloc and free in the child, and the most pages that may come on top.
LIMITS = [(1, 55), (40000, 58), (60000, 120)]


def main():
    program = build("forkcost.c", "gcc", "-O1", "preload")
    for pairs, most in LIMITS:
        alone = bare([program, str(pairs)])
        under = traced([program, str(pairs)], "preload", scratch())
        equal((alone.returncode, under.returncode), (3, 3), pairs, "pairs: exit status")
        more = int(under.stdout) - int(alone.stdout)
        print(pairs, "pairs:", more, "pages more than", int(alone.stdout))
        if more > most:
            fail(pairs, "pairs in a child:", more, "pages more, at most", most)
    finish()


main()
