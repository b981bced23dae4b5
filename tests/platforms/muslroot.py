#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""muslroot.py PROCESSOR: musl for another machine, for which Debian has no cross compiler: the packages of that
architecture, unpacked into the build folder, and a wrapper of the cross compiler for glibc, as musl's own is one for
gcc. `scripts/test-platforms aarch64-musl` runs it; it downloads 1 MB."""

import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts"))

from foreign import musl_root  # pylint: disable=wrong-import-position
from sysroot import MACHINES, RELEASE, Packages  # pylint: disable=wrong-import-position


def write_wrapper(root, triplet, musl):
    """musl-gcc, with the paths of a root that is not /."""
    with open(os.path.join(root, "usr/lib", musl, "musl-gcc.specs"), encoding="utf-8") as file:
        specs = re.sub("/usr/(include|lib)/" + musl, root + r"\g<0>", file.read())
    with open(os.path.join(root, "musl-gcc.specs"), "w", encoding="utf-8") as file:
        file.write(specs)
    wrapper = os.path.join(root, "musl-gcc")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec %s-gcc "$@" -specs "%s/musl-gcc.specs"\n' % (triplet, root))
    os.chmod(wrapper, 0o755)


def main():
    processor = sys.argv[1]
    root = musl_root(processor)
    if not os.path.exists(os.path.join(root, "musl-gcc")):
        shutil.rmtree(root, ignore_errors=True)
        musl = processor + "-linux-musl"
        architecture, triplet = MACHINES[processor]
        Packages(os.path.dirname(root), architecture, RELEASE).unpack_alone(root, ["musl", "musl-dev"])
        shutil.copytree(os.path.join(root, "lib", musl), os.path.join(root, "usr/lib", musl), dirs_exist_ok=True)
        write_wrapper(root, triplet, musl)


if __name__ == "__main__":
    main()
