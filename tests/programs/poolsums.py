# SPDX-License-Identifier: MIT
"""poolsums.py: what a profile says of the program's own allocators. Also for tests that know nothing but a report."""


def pools(data):
    """{pool: (allocations, bytes, frees)} of a report in JSON."""
    found = {}
    for context in data["pools"]:
        row = found.setdefault(context["pool"], [0, 0, 0])
        for place, name in enumerate(("allocations", "total_bytes", "frees")):
            row[place] += context[name]
    return {name: tuple(row) for name, row in found.items()}
