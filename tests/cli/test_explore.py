"""``rblspi explore`` as a user types it."""

from __future__ import annotations

import os

import pytest

from rblspi import RBLSPI
from tests.support.command import run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A folder with an agent on a lake of 4 x 4 cells."""
    folder = tmp_path_factory.mktemp("lake")
    RBLSPI("FrozenLake-v1", seed=0).learn(300).save(folder / "agent.npz")
    return folder


def test_the_page_is_written_beside_the_agent_or_where_it_is_wanted(lake, tmp_path, capsys):
    assert run("explore", lake) == 0
    assert f"open {lake / 'explore.html'}" in capsys.readouterr().out
    assert run("explore", lake / "agent.npz", "--out", tmp_path / "new" / "page.html") == 0
    page = (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert "<title>FrozenLake-v1, as rblspi sees it</title>" in page
    assert '"grid": [4, 4]' in page
    assert "location.reload" not in page


def test_another_grid_can_be_typed(lake, tmp_path):
    page = tmp_path / "page.html"
    assert run("explore", lake, "--grid", "2x8", "--out", page) == 0
    assert '"grid": [2, 8]' in page.read_text(encoding="utf-8")
    assert run("show", lake, "--grid", "2x8", "--out", tmp_path) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "page.pdf"], "--out page.pdf must end in .html"),
        (["--grid", "4"], "4 must be rows and columns: 4x12"),
        (["--grid", "3x5"], "grid=3x5 does not fit the observations, Discrete(16)"),
        (["--names", "a,b,c"], "names=a,b,c must be 1, one for each dimension"),
        (["--at", "a"], "a must be numbers"),
    ],
)
def test_mistakes_are_told_in_a_sentence(lake, capsys, options, message):
    assert run("explore", lake, *options) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_live_writes_the_page_again_when_the_agent_is_saved(lake, tmp_path, monkeypatch):
    page, agent = tmp_path / "page.html", lake / "agent.npz"
    written = []

    def sleep(seconds):
        written.append(page.stat().st_mtime_ns)
        match len(written):
            case 2:
                os.utime(agent)
            case 4:
                raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    assert run("explore", lake, "--live", "--out", page) == 130
    first, second, third, last = written
    assert first == second < third == last
    assert "location.reload(), 2000" in page.read_text(encoding="utf-8")
