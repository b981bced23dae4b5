# SPDX-License-Identifier: MIT
"""Which C++ compiler belongs to a Clang."""

import os


def plus(clang):
    """Clang's own folder has clang-14 and clang++, /usr/bin has clang++-14 as well."""
    folder, name = os.path.split(clang)
    same = os.path.join(folder, name.replace("clang", "clang++"))
    return same if os.path.exists(same) else os.path.join(folder, "clang++")
