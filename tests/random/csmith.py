# SPDX-License-Identifier: MIT
"""Programs of csmith with allocations at the beginning of some blocks: odd C that none of us would
have written. Their output is csmith's checksum of all globals."""

import random
import re
import shutil
import subprocess

OPTIONS = ["--no-argc", "--max-funcs", "8", "--max-block-depth", "4", "--max-block-size", "4"]
FEWEST_BLOCKS = 15  # many of its programs are almost empty
POINTS = """#include "prelude.h"

static unsigned points;

static inline __attribute__((always_inline)) void point(size_t size) {
    if (points < 500) {
        points++;
        hold(malloc(size), size);
    }
}

static void __attribute__((noinline)) far_point(size_t size) {
    point(size);
    mix((uint32_t)size);
}

"""


def available():
    return shutil.which("csmith") is not None


def text(seed):
    choose = random.Random("csmith %d" % seed)
    attempt = 0
    while True:
        made = subprocess.run(["csmith", "--seed", str(seed * 1000 + attempt), *OPTIONS],
                              capture_output=True, text=True, timeout=60).stdout
        if made.count("block id:") >= FEWEST_BLOCKS:
            break
        attempt += 1

    def with_point(match):
        kind = choose.choice(["", "", "point", "point", "far_point"])
        return match.group(0) + ("\n%s(%d);" % (kind, choose.randrange(1, 2000)) if kind else "")

    made = re.sub(r"^ *\{ /\* block id: \d+ \*/$", with_point, made, flags=re.MULTILINE)
    return POINTS + made.split("/************************ statistics")[0]
