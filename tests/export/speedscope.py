#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""speedscope's own importer loads our file and gives back what we wrote; the file is what its schema
asks for. It reads folded stacks, too."""

import base64
import json
import os

from browser import Page
from exported import (COSTS, equal, export, fail, finish, install, recorded, report, scratch, skip)
from harness import have

VERSION = "1.25.0"

# Its page, asked to load a local file, offers this function to the script that brings it; saving writes what it has in memory as a file of its own
# format, which we catch.
ROUND_TRIP = """(async () => {
    const sleep = ms => new Promise(done => setTimeout(done, ms));
    let caught = null;
    const create = URL.createObjectURL;
    URL.createObjectURL = blob => { caught = blob; return create.call(URL, blob); };
    HTMLAnchorElement.prototype.click = () => {};
    speedscope.loadFileFromBase64("%s", "%s");
    for (let i = 0; i < 600 && caught === null; i++) {
        await sleep(100);
        window.dispatchEvent(new KeyboardEvent("keydown", {key: "s", ctrlKey: true}));
    }
    return caught === null ? "" : await caught.text();
})()"""


def round_trip(page, release, name, text):
    """What speedscope saves when it has loaded a file."""
    page.open("about:blank")
    page.open(os.path.join(release, "index.html#localProfilePath=%s/nothing.js" % release))
    saved = page.run(ROUND_TRIP % (name, base64.b64encode(text).decode()))
    if not saved:
        fail("speedscope does not load", name, page.errors)
        finish()
    return json.loads(saved)


def costs_by_name(data, profile):
    """Own cost of each function, from events."""
    own, stack, at = {}, [], profile["startValue"]
    for event in profile["events"]:
        if stack:
            name = data["shared"]["frames"][stack[-1]]["name"]
            own[name] = own.get(name, 0) + event["at"] - at
        at = event["at"]
        stack.append(event["frame"]) if event["type"] == "O" else stack.pop()
    return {name: cost for name, cost in own.items() if cost}


def main():
    try:
        import jsonschema
    except ImportError:
        skip("no python3-jsonschema")
    have("npm")
    folder = install(["npm", "install", "--prefix", "FOLDER", "--no-audit", "--no-fund",
                      "--ignore-scripts", "--no-save", "speedscope@" + VERSION], "speedscope")
    release = os.path.join(folder, "node_modules", "speedscope", "dist", "release")
    recording, _ = recorded(scratch())
    text = export(recording, "--format", "speedscope")
    ours, data = json.loads(text), report(recording)
    with open(os.path.join(release, "file-format-schema.json"), encoding="utf-8") as file:
        jsonschema.validate(ours, json.load(file))
    page = Page("--allow-file-access-from-files")
    try:
        with open(os.path.join(release, "nothing.js"), "w", encoding="utf-8"):
            pass
        theirs = round_trip(page, release, "x.speedscope.json", text)
        equal(len(theirs["profiles"]), len(COSTS), "profiles")
        for cost, mine, its in zip(COSTS, ours["profiles"], theirs["profiles"]):
            equal(its["endValue"], data[COSTS[cost][0]], cost, "total in speedscope")
            equal(costs_by_name(theirs, its), costs_by_name(ours, mine), cost, "own costs in speedscope")
            equal(its["unit"], "bytes" if cost in ("peak", "live", "total") else "none", cost, "unit")
        folded = export(recording, "--format", "folded", "--cost", "live")
        theirs = round_trip(page, release, "x.folded", folded)
        equal(theirs["profiles"][0]["endValue"], data["live_bytes"], "folded stacks in speedscope")
    finally:
        page.close()
    finish()


main()
