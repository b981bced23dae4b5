# SPDX-License-Identifier: MIT
"""Debian's source packages, by `apt-get source` with a configuration of its own: the system's stays
as it is. Used by real.py and by benchmarks/programs."""

import glob
import os
import re
import shutil
import subprocess
import tempfile

LIMIT_S = 300


class Unavailable(Exception):
    """The sources cannot be had here; the message says why."""


def run(command, why, **more):
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False, **more)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Unavailable(f"{why}: {problem}") from problem
    if result.returncode != 0:
        raise Unavailable(f"{why}: {result.stdout.decode(errors='replace')[-2000:]}")


def source_lists(folder):
    """The system's own package sources, asked for source packages."""
    os.makedirs(folder, exist_ok=True)
    for path in glob.glob("/etc/apt/sources.list") + glob.glob("/etc/apt/sources.list.d/*"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path.endswith(".sources"):
            text = re.sub(r"(?m)^Types:.*$", "Types: deb-src", text)
        elif path.endswith(".list"):
            text = re.sub(r"(?m)^\s*deb\s", "deb-src ", text)
        else:
            continue
        with open(os.path.join(folder, os.path.basename(path)), "w", encoding="utf-8") as file:
            file.write(text)


def apt_environment(folder):
    """The environment under which apt-get knows source packages; their lists lie in `folder`."""
    configuration = os.path.join(folder, "apt.conf")
    environment = dict(os.environ, APT_CONFIG=configuration)
    if not os.path.exists(configuration):
        for sub in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(folder, sub), exist_ok=True)
        source_lists(os.path.join(folder, "parts"))
        with open(configuration + ".new", "w", encoding="utf-8") as file:
            file.write(f'Dir::State::Lists "{folder}/lists";\nDir::Etc::SourceList "/dev/null";\n'
                       f'Dir::Etc::SourceParts "{folder}/parts";\nDir::Cache "{folder}/cache";\n'
                       'APT::Sandbox::User "root";\n')
        run(["apt-get", "update"], "no package lists",
            env=dict(environment, APT_CONFIG=configuration + ".new"))
        os.rename(configuration + ".new", configuration)
    return environment


def download(package, cache):
    """The folder of the source package's files; downloaded once a cache folder."""
    folder = os.path.join(os.path.abspath(cache), package)
    if not glob.glob(os.path.join(folder, "*.dsc")) or not glob.glob(os.path.join(folder, "*.orig.tar.*z")):
        os.makedirs(folder, exist_ok=True)
        run(["apt-get", "source", "--download-only", package], "no source package " + package,
            env=apt_environment(os.path.join(folder, "apt")), cwd=folder)
    return folder


def unpack(folder, name, command):
    """folder/name, which command makes when the last argument is added to it: whole, or not there."""
    result = os.path.join(folder, name)
    if not os.path.isdir(result):
        shutil.rmtree(result + ".new", ignore_errors=True)
        run([*command, result + ".new"], "cannot unpack")
        os.rename(result + ".new", result)
    return result


def source(package, cache):
    """The folder of the unpacked upstream sources."""
    folder = download(package, cache)
    return unpack(folder, "unpacked", ["sh", "-c", 'mkdir "$1" && tar xf "$0" -C "$1" --strip-components=1',
                                       glob.glob(os.path.join(folder, "*.orig.tar.*z"))[0]])


def patched(package, cache):
    """The folder of the sources as Debian builds them: with its patches. Needs dpkg-source."""
    folder = download(package, cache)
    return unpack(folder, "patched", ["dpkg-source", "--no-check", "-x", glob.glob(os.path.join(folder, "*.dsc"))[0]])


def amalgamation(folder):
    """SQLite's one-file form, made by its own build (which needs tclsh)."""
    if not os.path.exists(os.path.join(folder, "sqlite3.c")):
        with tempfile.TemporaryDirectory(dir="/tmp") as place:  # its Makefile takes no blank in a path
            copy = shutil.copytree(folder, os.path.join(place, "sqlite"), symlinks=True)
            run(["sh", "./configure", "--disable-tcl", "--disable-readline"], "configure", cwd=copy)
            run(["make", "sqlite3.c"], "the amalgamation", cwd=copy)
            shutil.copytree(copy, folder, symlinks=True, dirs_exist_ok=True)
