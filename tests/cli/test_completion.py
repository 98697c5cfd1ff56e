"""What the Tab key suggests, asked for as bash does."""

import pytest

from tests.support.command import run


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("rblspi rep", ["reproduce"]),
        ("rblspi train rblspi/Sparse", ["rblspi/SparseMountainCar-v0"]),
        ("rblspi train CartPole-v1 --algo on", ["online-lspi"]),
        ("rblspi fit logs.parquet --algo bls", ["blspi", "blstd"]),
        ("rblspi train CartPole-v1 --basis RBF", ["RBFGrid"]),
        ("rblspi reproduce cart", ["cart-pole"]),
    ],
)
def test_tab_suggests_names(typed, suggested, monkeypatch, capsys):
    monkeypatch.setenv("_RBLSPI_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert run() == 0
    said = capsys.readouterr()
    assert said.out.split() == suggested
    assert said.err == ""
