# SPDX-License-Identifier: MIT
"""embedded.py: a table of symbols in .gnu_debugdata whose packer says that unpacking takes 4 GiB: the program's own
table names its functions, and nothing else is lost."""

import lzma
import os
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from harness import BUILD, clean_environment, equal, finish, scratch  # noqa: E402

HEADER = 12   # of the stream; the block's own header follows
LARGEST = 40  # as LZMA2 spells a dictionary of 4 GiB


def with_large_dictionary(packed):
    """The .xz file format, 3.1: size of the header, flags, filter, size of its properties, dictionary, ..., CRC32."""
    size = (packed[HEADER] + 1) * 4
    header = bytearray(packed[HEADER:HEADER + size - 4])
    equal((header[1] & 0xC0, header[2], header[3]), (0, 0x21, 1), "the header of a block")
    header[4] = LARGEST
    return packed[:HEADER] + bytes(header) + struct.pack("<I", zlib.crc32(header)) + packed[HEADER + size:]


def main():
    folder = scratch()
    path = os.path.join(folder, "program")
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write("__attribute__((noinline)) int leaf(int n) { __asm__ volatile(\"\"); return n + 1; }\n"
                   "int main(void) { return leaf(-1); }\n")
    subprocess.run(["gcc", "-O1", "-o", path, path + ".c"], check=True)
    with open(path, "rb") as file, open(path + ".xz", "wb") as packed:
        packed.write(with_large_dictionary(lzma.compress(file.read())))
    subprocess.run(["objcopy", "--add-section", ".gnu_debugdata=" + path + ".xz", path], check=True)
    address = next(line.split()[0] for line in subprocess.run(
        ["nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines() if line.endswith(" leaf"))
    said = subprocess.run([os.path.join(BUILD, "bin", "memtrace"), "symbolize", "--no-debuginfod", "--memory-limit", "1G"],
                          input="%s+0x%s\n" % (path, address), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=clean_environment(MEMTRACE_CACHE=""), check=False)
    equal((said.returncode, said.stdout.split()[:1]), (0, ["leaf"]), said.stdout)


main()
finish()
