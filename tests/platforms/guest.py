# SPDX-License-Identifier: MIT
"""guest.py: a whole machine in qemu's system emulation, with a kernel of Debian's and an initramfs of our making. Each
of its tests is a shell command in an empty folder; what it prints, its status and the files that it leaves come back
over the serial line. Of kernel.py."""

import base64
import io
import os
import re
import stat
import subprocess
import tarfile

from foreign import fail

PATIENCE = 7200
# What nobody reads there.
LEFT_OUT = re.compile(r"^(usr/share/(doc|man|locale|info|bash-completion|lintian)/|usr/include/|apt|\.unpacked|var/|"
                      r"usr/lib/python3[^/]*/(test|idlelib|tkinter|ensurepip|pydoc_data)/|.*\.a$)")

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /dev/shm
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm
/bin/busybox mount -t tmpfs tmp /dev/shm
/bin/busybox chmod 1777 /tmp /dev/shm
/bin/busybox ip link set lo up
export PATH=/bin:/usr/bin HOME=/tmp LD_LIBRARY_PATH=/opt/memtrace/lib
for it in sh rm mkdir tar gzip base64 uname cp basename dd; do [ -e /bin/$it ] || /bin/busybox ln -s /bin/busybox /bin/$it; done
echo "=== kernel $(uname -r)"
/bin/busybox sh /tests 2>&1
echo '=== all'
/bin/busybox poweroff -f
"""


def initramfs(files, to):
    """A cpio archive: path -> file or link of this machine, or its text. Not compressed: the guest would take longer."""
    with open(to, "wb") as out:
        def put(path, mode, data=b""):
            name = path.encode() + b"\0"
            fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
            head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
            out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

        made = set()
        for path, source in sorted(files.items()):
            parts = path.split("/")[:-1]
            for count in range(1, len(parts) + 1):
                folder = "/".join(parts[:count])
                if folder not in made:
                    made.add(folder)
                    put(folder, stat.S_IFDIR | 0o755)
            if "\n" in source:
                put(path, stat.S_IFREG | 0o755, source.encode())
            elif os.path.islink(source):
                put(path, stat.S_IFLNK | 0o777, os.readlink(source).encode())
            else:
                with open(source, "rb") as file:
                    put(path, stat.S_IFREG | 0o755, file.read())
        put("TRAILER!!!", 0)


def unpack(data):
    """Name -> bytes of what a test has left."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(data)), mode="r:gz") as archive:
        return {member.name[2:]: archive.extractfile(member).read() for member in archive if member.isfile()}


class Guest:
    def __init__(self, machine, folder):
        self.machine, self.folder = machine, folder
        self.files = {"init": INIT}
        self.tests = {}

    def add_folder(self, root):
        """All that lies below it."""
        for place, folders, names in os.walk(root):
            links = [name for name in folders if os.path.islink(os.path.join(place, name))]
            for name in names + links:
                path = os.path.join(place, name)
                inside = os.path.relpath(path, root)
                if not LEFT_OUT.match(inside) and (os.path.islink(path) or os.path.isfile(path)):
                    self.files[inside] = path

    def add_test(self, name, command, leaves=False):
        """leaves: the files that it leaves are wanted."""
        self.tests[name] = (command, leaves)

    def script(self):
        lines = []
        for name, (command, leaves) in self.tests.items():
            lines.append("echo '=== begin %s'; rm -rf /tmp/out; mkdir /tmp/out; cd /tmp/out; (%s); echo \"=== status $?\"" %
                         (name, command))
            lines.append(("cd /tmp/out; tar -cz -f - . | base64; " if leaves else "") + "echo '=== end'")
        return "\n".join(lines) + "\n"

    def boot(self, kernel):
        """The kernel's name; of each test what it said, its status, the files that it left."""
        image = os.path.join(self.folder, "initramfs.cpio")
        initramfs({**self.files, "tests": self.script()}, image)
        console = os.path.join(self.folder, "console")
        with open(console, "wb") as file:
            subprocess.run(["qemu-system-" + self.machine, "-M", "virt", "-cpu", "max", "-smp", "2", "-m", "2048", "-nographic",
                            "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", image, "-append",
                            "console=ttyAMA0 panic=-1 quiet"], stdin=subprocess.DEVNULL, stdout=file,
                           stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        with open(console, encoding="utf-8", errors="replace") as file:
            text = file.read().replace("\r", "")
        if "=== all" not in text:
            fail("the kernel did not come to the end:\n" + text[-3000:])
        found = re.findall(r"=== begin (\S+)\n(.*?)=== status (\d+)\n(.*?)=== end", text, re.DOTALL)
        results = {name: (said, int(status), unpack(data) if data.strip() else {}) for name, said, status, data in found}
        if sorted(results) != sorted(self.tests):
            fail("came back:", sorted(results), "of", sorted(self.tests))
        return re.search(r"=== kernel (.*)", text)[1], results
