"""Every example of the gallery runs, warns of nothing and draws something.

`make docs` requires the same of each, so that these tests are left out where it runs first.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.pages import ROOT

SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))

DRAWS = """
import runpy, sys
from matplotlib.figure import Figure
names = runpy.run_path(sys.argv[1], run_name="__main__")
assert any(isinstance(value, Figure) for value in names.values()), "no figure has a name"
"""


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="make docs runs them")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path) -> None:
    command = [sys.executable, "-W", "error", "-c", DRAWS, str(path)]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
