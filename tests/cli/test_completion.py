"""What the Tab key suggests, asked for as bash does."""

import os
import subprocess
import sys

import pytest


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
def test_tab_suggests_names(typed, suggested):
    asked = {
        "_RBLSPI_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    code = "from rblspi.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == suggested
    assert done.stderr == ""
