"""The pages of the documentation, and the code in them."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
import matplotlib
from matplotlib import pyplot as plt

import rblspi.environments  # noqa: F401  # registers them, so that scripts leave them registered

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(
            page
            for page in DOCS.rglob("*.md")
            if not {"_build", "gallery", "api"} & set(page.relative_to(DOCS).parts)
        ),
    ]
)

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.S | re.M)
_COMMAND = re.compile(r"^(?: {4}|\$ )?(rblspi [^#\n]*)", re.M)


class Block(NamedTuple):
    language: str
    code: str


def name(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """The blocks of code between fences, in order."""
    return [Block(*found) for found in _FENCE.findall(page.read_text(encoding="utf-8"))]


def commands(page):
    """The words of every ``rblspi`` command that stands on a line of its own."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in _COMMAND.findall(text):
        yield shlex.split(line)[1:]


#: commands run in the same process, but for one whose workers would run the page again
START = """
def _rblspi(words):
    import subprocess, sys
    from rblspi.cli import main
    if words[0] == "reproduce":
        command = [sys.executable, "-c", "from rblspi.cli import main; main()", *words]
        subprocess.run(command, check=True)
        return
    try:
        main(words)
    except SystemExit as end:
        assert not end.code, words
"""


def script(page):
    """All Python and shell blocks of a page as one program."""
    parts = [START]
    for block in blocks(page):
        if block.language == "python":
            parts.append(block.code)
        elif block.language == "sh":
            parts += map(_call, filter(None, block.code.splitlines()))
    return "\n".join(parts)


def _call(line):
    words = shlex.split(line, comments=True)
    assert words[0] == "rblspi", f"{line}: only rblspi can be run in a shell block"
    return f"_rblspi({words[1:]!r})"


def run_script(script, folder, monkeypatch):
    """Run a script in a folder, without a process of its own; returns its names."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", [str(script)])
    matplotlib.use("agg")
    registered = dict(gym.registry)
    try:
        return runpy.run_path(str(script), run_name="__main__")
    finally:
        gym.registry.clear()
        gym.registry.update(registered)
        plt.close("all")
