#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page stays small: what the browser fetches before it shows anything, and all of it."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "asking"), os.path.join(SOURCE, "benchmarks")]

from serving import equal, finish  # noqa: E402
from gui.sizes import ALL_LIMIT, FIRST_LIMIT, first_load, sizes  # noqa: E402

DIST = os.path.join(SOURCE, "web", "ui", "dist")
names = first_load(DIST)
equal(len(names) >= 3 and all(os.path.exists(os.path.join(DIST, name)) for name in names), True, "what index.html names", names)
first, whole = sizes(DIST)
equal(0 < first <= FIRST_LIMIT, True, "first load in gzipped bytes", first, "of", FIRST_LIMIT)
equal(first <= whole <= ALL_LIMIT, True, "all in gzipped bytes", whole, "of", ALL_LIMIT)
finish()
