#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""system.py MACHINE [STACKS [KERNEL]]: the same stacks as foreign.py on a real kernel of MACHINE, in qemu's system emulation:
addresses of 48 bits, signed return addresses with the kernel's keys, fork, and pages of 16 KiB as a kernel has them.
Each kernel of SYSTEMS is booted with an initramfs of the test programs; what they print and the profiles that they leave
come back over the serial line. The memtrace command for devices (MEMTRACE_TOOLS=agent), cross-compiled, runs there, too.
With KERNEL, an image of one's own, it is that kernel alone.

Not part of scripts/test: it downloads Debian packages of that architecture (some 130 MB, kept in the build folder), which
are unpacked, never installed. `scripts/test-platforms MACHINE --system` is the way to run it."""

import base64
import glob
import gzip
import os
import re
import shutil
import stat
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts"))
from foreign import (BUILDS, PAGES, PROCESSORS, Machine, check_counts,  # pylint: disable=wrong-import-position
                     check_guards, fail, report, run)
from sysroot import Packages  # pylint: disable=wrong-import-position

PATIENCE = 1800
# "architecture" is Debian's name. Of each kernel: release, the package that depends on the newest, the size of its pages.
# The C library is the cross compiler's, or with "own_libraries" the first release's: there is no Debian 12 for RISC-V, and
# the C library of its cross compiler lacks unwind tables. "command" is the build that memtrace run and record are tried with.
SYSTEMS = {
    "aarch64": {"architecture": "arm64", "loader": "ld-linux-aarch64.so.1", "console": "ttyAMA0", "command": "signed",
                "qemu": ["-M", "virt", "-cpu", "max"], "own_libraries": False,
                "kernels": [("bookworm", "linux-image-arm64", 4096), ("trixie", "linux-image-arm64-16k", 16384)]},
    "riscv64": {"architecture": "riscv64", "loader": "ld-linux-riscv64-lp64d.so.1", "console": "ttyS0", "command": "O2",
                "qemu": ["-M", "virt"], "own_libraries": True, "kernels": [("trixie", "linux-image-riscv64", 4096)]},
}
# What the command for devices is linked with, and the shell of the initramfs.
LIBRARIES = "libelf-dev zlib1g-dev libzstd-dev libyajl-dev libssl-dev libxxhash-dev busybox-static".split()

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /dev/shm
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm
/bin/busybox mount -t tmpfs tmp /dev/shm
export PATH=/bin LD_LIBRARY_PATH=/lib MEMTRACE_SUMMARY=0
/bin/busybox sh /tests 2>&1
echo '=== all'
/bin/busybox poweroff -f
"""


def initramfs(files, to):
    """A cpio archive: path -> file of this machine, or its text."""
    folders = {os.path.dirname(path) for path in files}
    with gzip.open(to, "wb", compresslevel=1) as out:
        def put(path, mode, data=b""):
            name = path.encode() + b"\0"
            fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
            head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
            out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

        for folder in sorted({part for one in folders for part in (one.split("/")[0], one) if part}):
            put(folder, stat.S_IFDIR | 0o755)
        for path, source in files.items():
            data = source.encode() if "\n" in source else open(source, "rb").read()
            put(path, stat.S_IFREG | 0o755, data)
        put("TRAILER!!!", 0)


class System:
    def __init__(self, machine, stacks):
        self.machine = machine
        self.about = SYSTEMS[machine.name]
        self.stacks = stacks
        self.folder = os.path.join(machine.folder, "system")
        os.makedirs(self.folder, exist_ok=True)
        self.root = os.path.join(self.folder, "root")
        self.libraries = os.path.join("/usr", machine.triplet, "lib")
        if self.about["own_libraries"]:
            self.libraries = os.path.join(self.root, "usr", "lib", machine.triplet)
        self.files = {}
        self.tests = []
        # (With memory tags a program without MemTrace is ended there, too.)
        self.builds = [build for build in machine.builds
                       if build not in PAGES and build not in PROCESSORS and build != "tagged" and machine.can_build(build)]

    def add_command(self):
        """The command for devices, with its libraries."""
        release = self.about["kernels"][0][0]
        root, built = self.root, os.path.join(self.folder, "agent")
        Packages(self.folder, self.about["architecture"], release).unpack(root, LIBRARIES + ["libstdc++6"])
        toolchain = os.path.join(self.folder, "toolchain.cmake")
        with open(toolchain, "w", encoding="utf-8") as file:
            file.write('include("%s")\nset(CMAKE_SYSROOT "%s")\n' % (self.machine.toolchain, root))
            if self.about["own_libraries"]: # they need a newer C library than the compiler's, which is there at run time
                file.write('set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--allow-shlib-undefined")\n')
            for kind in ("LIBRARY", "INCLUDE", "PACKAGE"):
                file.write("set(CMAKE_FIND_ROOT_PATH_MODE_%s ONLY)\n" % kind)
            file.write('set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)\nset(ENV{PKG_CONFIG_SYSROOT_DIR} "%s")\n'
                       'set(ENV{PKG_CONFIG_LIBDIR} "%s/usr/lib/%s/pkgconfig:%s/usr/share/pkgconfig")\n' %
                       (root, root, self.machine.triplet, root))
        source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        run(["cmake", "-S", source, "-B", built, "-G", "Ninja", "--toolchain", toolchain, "-DMEMTRACE_TOOLS=agent"])
        run(["cmake", "--build", built])
        self.files["bin/memtrace"] = os.path.join(built, "bin", "memtrace")
        self.files["bin/busybox"] = (glob.glob(root + "/bin/busybox") + glob.glob(root + "/usr/bin/busybox"))[0]
        folder = os.path.join(root, "usr", "lib", self.machine.triplet)
        for name in ("libelf.so.1", "libz.so.1", "libzstd.so.1", "libyajl.so.2", "libssl.so.3", "libcrypto.so.3"):
            found = [path for path in (os.path.join(folder, name), os.path.join(root, "lib", self.machine.triplet, name))
                     if os.path.exists(path)]
            self.files["lib/" + name] = found[0]

    def add_programs(self):
        """stacks.cpp in each way, with the C library that it was linked with."""
        for build in self.builds:
            for name, compiler, flags in self.machine.ways(build):
                self.add_stacks(name, compiler, flags, self.machine.arguments(build), BUILDS[build][2])
        for kind in ("run", "record"):
            self.tests.append((kind, "memtrace %s --no-summary --output /tmp/profile -- stacks.%s 1 %d" %
                               (kind, self.about["command"], self.stacks)))
        self.files["lib/libmemtrace.so"] = self.machine.library
        self.files["lib/libmemtrace.so.0"] = self.machine.library
        for name in (self.about["loader"], "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6"):
            self.files["lib/" + name] = os.path.join(self.libraries, name)

    def add_stacks(self, name, compiler, flags, arguments, settings):
        program = os.path.join(self.folder, "stacks." + name)
        self.machine.compile("stacks.cpp", flags, program, compiler)
        self.files["bin/stacks." + name] = program
        words = " ".join("%s=%s" % pair for pair in settings.items())
        self.tests.append(("own." + name, "%s MEMTRACE_OUTPUT=/tmp/profile stacks.%s 1 %d %s" %
                           (words, name, self.stacks, " ".join(arguments))))

    def boot(self, kernel, pages):
        """What each test printed, and the profile that it left."""
        lines = []
        for name, command in self.tests:
            lines.append("echo '=== begin %s'; rm -f /tmp/profile; %s; echo \"=== status $?\"; "
                         "gzip -c /tmp/profile | base64; echo '=== end'" % (name, command))
        shell = ["for it in rm gzip base64 uname; do /bin/busybox ln -s /bin/busybox /bin/$it; done",
                 "echo \"=== kernel $(uname -r)\""]
        self.files["tests"] = "\n".join(shell + lines) + "\n"
        self.files["init"] = INIT
        image = os.path.join(self.folder, "initramfs.gz")
        initramfs(self.files, image)
        text = subprocess.run(["qemu-system-" + self.machine.name, *self.about["qemu"], "-smp", "2", "-m", "1024",
                               "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", image, "-append",
                               "console=%s panic=-1 quiet" % self.about["console"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=PATIENCE, check=False).stdout.decode(errors="replace")
        text = text.replace("\r", "")
        with open(os.path.join(self.folder, "console." + pages), "w", encoding="utf-8") as file:
            file.write(text)
        if "=== all" not in text:
            fail("the kernel did not come to the end:\n" + text[-3000:])
        version = re.search(r"=== kernel (.*)", text)[1]
        pattern = r"=== begin (\S+)\n(.*?)=== status (\d+)\n(.*?)=== end"
        return version, {name: (said, int(status), data) for name, said, status, data in
                         re.findall(pattern, text, re.DOTALL)}

    def check(self, name, said, status, data, pages):
        """As foreign.py has it."""
        profile = os.path.join(self.folder, "%s.%s" % (name, pages))
        try:
            with open(profile, "wb") as file:
                file.write(gzip.decompress(base64.b64decode(data)))
        except (ValueError, OSError, EOFError, zlib.error):
            fail(name, "left no profile; it said", said)
        told = re.search(r"(\d+) stacks, (\d+) paths, (\d+) blocks, (\d+) bytes", said)
        if status != 0 or not told or int(told[1]) != 2 * self.stacks or told[2] != told[3]:
            fail(name, "ended with", status, "and said", said)
        check_guards(name.split(".", 1)[-1], said)
        program = os.path.join(self.folder, "stacks." + (name.split(".", 1)[1] if "." in name else
                                                         self.about["command"]))
        root = os.path.join(self.folder, "copies")
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        shutil.copy(program, root)
        found = report(profile, "--root", ":".join([root, self.libraries, "/usr/" + self.machine.triplet]))
        return check_counts(name, found, told)


def kernels(system, image):
    """Each with what is said of its pages, as it is needed."""
    if image:
        yield image, "its own size"
        return
    for release, package, page in system.about["kernels"]:
        yield Packages(system.folder, system.about["architecture"], release).kernel(package), str(page)


def main():
    machine = Machine(sys.argv[1])
    system = System(machine, int(sys.argv[2]) if len(sys.argv) > 2 else 500)
    machine.build()
    system.add_command()
    system.add_programs()
    for kernel, pages in kernels(system, sys.argv[3] if len(sys.argv) > 3 else None):
        version, results = system.boot(kernel, pages)
        if sorted(results) != sorted(name for name, _ in system.tests):
            fail("came back:", sorted(results))
        paths = sum(system.check(name, *result, pages) for name, result in results.items())
        print("%s, Linux %s, pages of %s: %d programs, %d paths as the unwinder has them, lost 0" %
              (machine.name, version, pages, len(results), paths), flush=True)


if __name__ == "__main__":
    main()
