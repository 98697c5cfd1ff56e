"""Chromium without a window, spoken to through a pipe: what a page asks for, and what it says."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)

# The browser reads commands from descriptor 3 and answers on descriptor 4.
ON_3_AND_4 = """
import os, sys
commands, answers = os.dup(int(sys.argv[1])), os.dup(int(sys.argv[2]))
os.dup2(commands, 3)
os.dup2(answers, 4)
os.set_inheritable(3, True)
os.set_inheritable(4, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find():
    """Path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One page; ``events`` are all that the browser told of it."""

    def __init__(self, commands, answers):
        self._commands, self._answers = commands, answers
        self._number = 0
        self._session = None
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")
        self.events.clear()

    def ask(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url):
        self.ask("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._read()

    def evaluate(self, expression):
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)[
            "result"
        ].get("value")

    def told(self, method):
        return [event["params"] for event in self.events if event["method"] == method]

    def complaints(self):
        """Errors and warnings on the console, exceptions, and what could not be loaded."""
        called = self.told("Runtime.consoleAPICalled")
        found = [call for call in called if call["type"] in ("error", "warning")]
        return found + self.told("Runtime.exceptionThrown") + self.told("Log.entryAdded")

    def _read(self):
        content = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has gone"
            content += byte
        message = json.loads(content)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def page():
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", ON_3_AND_4, str(to_read), str(from_write)),
                *(find(), *FLAGS, f"--user-data-dir={profile}"),
            ],
            pass_fds=(to_read, from_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        with os.fdopen(to_write, "wb") as commands, os.fdopen(from_read, "rb") as answers:
            try:
                yield Page(commands, answers)
            finally:
                process.terminate()
                process.wait()
