"""Every example of the gallery runs, warns of nothing and draws something.

`make docs` requires the same of each, so that these tests are left out where it runs first.
"""

import os
import runpy

import matplotlib
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tests.support.pages import ROOT

SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="make docs runs them")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    names = runpy.run_path(str(path), run_name="__main__")
    assert any(isinstance(value, Figure) for value in names.values()), "no figure has a name"
    plt.close("all")
