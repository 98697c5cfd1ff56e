"""``rblspi explore`` as a user types it."""

import os
import socket

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


def test_a_still_page_is_written_where_it_is_wanted(lake, tmp_path, capsys):
    page = tmp_path / "new" / "page.html"
    assert run("explore", lake / "agent.npz", "--html", page) == 0
    assert f"open {page}" in capsys.readouterr().out
    assert "FrozenLake-v1, as rblspi sees it" in page.read_text(encoding="utf-8")


def test_another_grid_can_be_typed(lake, tmp_path):
    assert run("explore", lake, "--grid", "2x8", "--html", tmp_path / "page.html") == 0
    assert run("show", lake, "--grid", "2x8", "--out", tmp_path) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--html", "page.pdf"], "--html page.pdf must end in .html"),
        (["--grid", "4"], "4 must be rows and columns: 4x12"),
        (["--grid", "3x5"], "grid=3x5 does not fit the observations, Discrete(16)"),
        (["--names", "a,b,c"], "names=a,b,c must be 1, one for each dimension"),
        (["--at", "a"], "a must be numbers"),
    ],
)
def test_mistakes_are_told_in_a_sentence(lake, capsys, options, message):
    assert run("explore", lake, *options) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_the_page_is_served_until_a_signal_and_follows_the_file(lake, monkeypatch, capsys):
    shown = []

    def application(latest):
        first = latest()
        assert latest() is first
        os.utime(lake / "agent.npz")
        shown.extend([first, latest()])
        return lambda document: None

    def interrupted(loop):
        raise KeyboardInterrupt

    monkeypatch.setattr("rblspi.plotting.explorer.app", application)
    monkeypatch.setattr("tornado.platform.asyncio.BaseAsyncIOLoop.start", interrupted)
    assert run("explore", lake, "--port", "0") == 130
    assert "open http://localhost:" in capsys.readouterr().out
    assert shown[0] is not shown[1]


def test_a_port_in_use_is_said(lake, capsys):
    with socket.create_server(("localhost", 0)) as taken:
        assert run("explore", lake, "--port", taken.getsockname()[1]) == 2
    assert "choose another port, or --port 0 for a free one" in " ".join(
        capsys.readouterr().err.split()
    )
