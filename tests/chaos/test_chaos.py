"""The short form of ``make chaos``: a trial or two of every kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_disturbed_commands_lose_nothing_and_get_nothing_wrong() -> None:
    command = [sys.executable, "-m", "tests.chaos", "--trials", "12"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
