# SPDX-License-Identifier: MIT
"""What the browser fetches of the page: gzipped bytes of web/ui/dist. Used by benchmarks/gui and by
tests/web/sizes.py."""

import gzip
import os
import re

FIRST_LIMIT, ALL_LIMIT = 130000, 300000
SAVED = "onefile.html"  # the page that exports carry: no browser fetches it


def packed(path):
    with open(path, "rb") as file:
        return len(gzip.compress(file.read(), 9))


def first_load(folder):
    """What index.html names and what is needed to show anything."""
    with open(os.path.join(folder, "index.html"), encoding="utf-8") as file:
        return ["index.html", *re.findall(r'(?:src|href)="/([^"]+)"', file.read())]


def sizes(folder):
    """(bytes of the first load, bytes of all)"""
    names = [name for name in sorted(os.listdir(folder)) if name != SAVED]
    return (sum(packed(os.path.join(folder, name)) for name in first_load(folder)),
            sum(packed(os.path.join(folder, name)) for name in names))
