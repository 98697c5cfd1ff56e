"""Every example of the gallery runs, warns of nothing and draws something.

`make docs` requires the same of each, so that these tests are left out where it runs first.
"""

import os

import pytest
from matplotlib.figure import Figure

from tests.support.pages import ROOT, run_script

SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="make docs runs them")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    names = run_script(path, tmp_path, monkeypatch)
    assert any(isinstance(value, Figure) for value in names.values()), "no figure has a name"
