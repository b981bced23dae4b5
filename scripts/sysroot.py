#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sysroot.py MACHINE FOLDER [RELEASE]: what the whole memtrace command is linked with on MACHINE (aarch64), from
Debian's packages of that machine, unpacked in FOLDER/root; and FOLDER/toolchain.cmake, by which CMake builds with it.
Nothing of it is installed, nothing needs root. scripts/cross calls it, and tests/platforms uses its parts."""

import glob
import os
import re
import subprocess
import sys

MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
RELEASE = "bookworm"
# Debian's architecture; the triplet of its compilers and folders.
MACHINES = {"aarch64": ("arm64", "aarch64-linux-gnu")}
# libunwind8: which programs load that run with MEMTRACE_UNWIND=libunwind.
LIBRARIES = """libdw-dev libedit-dev libelf-dev libiberty-dev liblzma-dev libmicrohttpd-dev libncurses-dev
    libprotobuf-c-dev libsqlite3-dev libssl-dev libunwind8 libxxhash-dev libyajl-dev libzstd-dev zlib1g-dev""".split()


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit("%s ended with %d\n%s" % (" ".join(command), done.returncode, done.stdout[-4000:]))
    return done.stdout


class Packages:
    """Debian packages of another architecture, by a private state of apt."""

    def __init__(self, folder, architecture, release):
        self.folder = os.path.join(os.path.abspath(folder), "apt." + release)
        for name in ("lists/partial", "cache/archives/partial", "dpkg"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        settings = {"APT::Architecture": architecture, "APT::Architectures": architecture, "Dir::State": self.folder,
                    "Dir::State::status": self.folder + "/dpkg/status", "Dir::Cache": self.folder + "/cache",
                    "Dir::Etc::sourcelist": self.folder + "/sources.list", "Dir::Etc::sourceparts": self.folder + "/sources.list.d",
                    "Acquire::Languages": "none", "APT::Sandbox::User": "root"}
        self.write("apt.conf", "".join('%s "%s";\n' % pair for pair in settings.items()))
        self.write("sources.list", "deb [signed-by=%s] %s %s main\n" % (KEYS, MIRROR, release))
        self.write("dpkg/status", "")
        self.environment = {**os.environ, "APT_CONFIG": self.folder + "/apt.conf"}
        run(["apt-get", "update"], env=self.environment)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def unpack(self, to, names):
        """With all that they depend on. What is there already is not unpacked again."""
        run(["apt-get", "install", "--download-only", "-y", "--no-install-recommends", *names], env=self.environment)
        noted = os.path.join(to, ".unpacked")
        os.makedirs(noted, exist_ok=True)
        for package in sorted(glob.glob(self.folder + "/cache/archives/*.deb")):
            note = os.path.join(noted, os.path.basename(package))
            if not os.path.exists(note):
                run(["dpkg", "-x", package, to])
                open(note, "w", encoding="utf-8").close()
        make_links_relative(to)

    def unpack_alone(self, to, names):
        """Without what they depend on; the packages themselves stay there, too."""
        os.makedirs(to, exist_ok=True)
        run(["apt-get", "download", *names], env=self.environment, cwd=to)
        for package in glob.glob(to + "/*.deb"):
            run(["dpkg", "-x", package, to])

    def kernel(self, name):
        """The file of the newest one."""
        package = re.search(r"Depends: (linux-image-\S+)", run(["apt-cache", "depends", name], env=self.environment))[1]
        to = os.path.join(self.folder, package)
        if not glob.glob(to + "/boot/vmlinu[xz]-*"):
            self.unpack_alone(to, [package])
        return glob.glob(to + "/boot/vmlinu[xz]-*")[0]


def make_links_relative(root):
    """Linkers follow a library's link to /lib as this machine sees it."""
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            target = os.readlink(path) if os.path.islink(path) else ""
            if target.startswith("/"):
                os.unlink(path)
                os.symlink(os.path.relpath(root + target, folder), path)


def write_toolchain(path, machine, root):
    """The compilers are this machine's, by the names that Debian gives them; all else is the sysroot's."""
    triplet = MACHINES[machine][1]
    lines = ["set(CMAKE_SYSTEM_NAME Linux)", "set(CMAKE_SYSTEM_PROCESSOR %s)" % machine,
             "set(CMAKE_C_COMPILER %s-gcc)" % triplet, "set(CMAKE_CXX_COMPILER %s-g++)" % triplet,
             'set(CMAKE_SYSROOT "%s")' % root, "set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)"]
    lines += ["set(CMAKE_FIND_ROOT_PATH_MODE_%s ONLY)" % kind for kind in ("LIBRARY", "INCLUDE", "PACKAGE")]
    lines += ['set(ENV{PKG_CONFIG_SYSROOT_DIR} "%s")' % root,
              'set(ENV{PKG_CONFIG_LIBDIR} "%s/usr/lib/%s/pkgconfig:%s/usr/share/pkgconfig")' % (root, triplet, root)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    machine, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    release = sys.argv[3] if len(sys.argv) > 3 else RELEASE
    if machine not in MACHINES:
        sys.exit("sysroot.py: of the machine %s no packages are known, of %s they are" % (machine, ", ".join(MACHINES)))
    os.makedirs(folder, exist_ok=True)
    root = os.path.join(folder, "root")
    Packages(folder, MACHINES[machine][0], release).unpack(root, LIBRARIES)
    write_toolchain(os.path.join(folder, "toolchain.cmake"), machine, root)


if __name__ == "__main__":
    main()
