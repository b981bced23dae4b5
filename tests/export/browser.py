# SPDX-License-Identifier: MIT
"""Chromium without a window, driven through a pair of pipes (its DevTools protocol)."""

import json
import os
import shutil
import subprocess

from exported import finish, scratch, skip
from harness import failures


class Page:
    """One page. errors: what the console and uncaught exceptions said; requests: URLs asked for."""

    def __init__(self, *options):
        command = shutil.which("chromium") or shutil.which("google-chrome")
        if command is None:
            finish() if failures else skip("no chromium")
        self.errors, self.requests, self.answers, self.count = [], [], {}, 0
        self.session, self.rest, self.loaded = None, b"", False
        theirs_in, self.to = os.pipe()
        self.of, theirs_out = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 3<&%d 4>&%d' % (theirs_in, theirs_out), "sh", command,
             "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-background-networking", "--disable-component-update", "--no-first-run",
             "--user-data-dir=" + scratch(), "--window-size=1280,900", *options],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def read(self):
        """The next message."""
        while b"\0" not in self.rest:
            some = os.read(self.of, 1 << 20)
            if not some:
                raise RuntimeError("chromium ended")
            self.rest += some
        one, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(one)
        self.note(message)
        return message

    def note(self, message):
        method, told = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(str([item.get("value") for item in told["args"]]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def ask(self, method, **parameters):
        self.count += 1
        number = self.count
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]

    def open(self, path):
        """Loads a file and waits until it is loaded."""
        self.loaded = False
        self.ask("Page.navigate", url=path if ":" in path else "file://" + path)
        while not self.loaded:
            self.read()

    def run(self, script):
        """The value of an expression; of a promise: what it gives."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")

    def key(self, key, **more):
        """Presses a key, given as DOM says it."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def close(self):
        self.process.kill()
        self.process.wait()
