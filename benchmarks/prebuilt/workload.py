# SPDX-License-Identifier: MIT
"""The JSON workload of `benchmarks/run prebuilt`: writes and reads again a document of a thousand
records, as often as the argument says. Prints its length, always the same."""

import json
import random
import sys


def record(number):
    return {"id": number, "name": f"name {number}", "even": number % 2 == 0, "none": None,
            "tags": [f"tag {number * step % 97}" for step in range(6)],
            "point": {"x": random.random(), "y": random.random(), "z": -number}}


def main():
    random.seed(1)
    document = {"records": [record(number) for number in range(1000)]}
    text = ""
    for _ in range(int(sys.argv[1])):
        text = json.dumps(document)
        document = json.loads(text)
    print(len(text))


main()
