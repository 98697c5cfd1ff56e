"""Compiled code is cached where it can be, and never beside the source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rblspi

pytestmark = pytest.mark.slow

PROGRAM = """
import numpy as np
from gymnasium.spaces import Box
from rblspi import RBFGrid
features = RBFGrid(3).build(Box(0.0, 1.0, (2,)))
print(repr(features(np.full((40, 2), 0.25)).sum()))
"""


def compute(cache: Path) -> tuple[str, str]:
    """What a fresh process computes and says, with this directory for the cache."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


def test_a_directory_that_cannot_be_written_is_replaced_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    expected, silent = compute(tmp_path / "cache")
    assert "cannot be cached" not in silent
    found, notice = compute(tmp_path / "file" / "cache")
    assert found == expected
    assert "compiled code cannot be cached in" in notice
    source = Path(rblspi.__file__).parent
    assert not list(source.rglob("*.nbi"))


def test_files_that_a_crash_left_empty_are_compiled_again(tmp_path: Path) -> None:
    expected, _ = compute(tmp_path)
    files = [path for path in tmp_path.rglob("*.nb*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(b"")
    assert compute(tmp_path)[0] == expected
