"""A run that will take long says so before it starts."""

import pytest

from rblspi import RBLSPI, RBFGrid
from rblspi.cli.train import _say_cost

CAR = "rblspi/MountainCar-v0"


def test_cost_grows_with_the_square_of_the_weights():
    small, large = (RBLSPI(CAR, RBFGrid(cells), seed=0).cost() for cells in (4, (4, 33)))
    assert large.weights / small.weights == pytest.approx(133 / 17)
    assert large.seconds_a_step / small.seconds_a_step == pytest.approx((133 / 17) ** 2)
    nothing = RBLSPI(CAR, RBFGrid(1), seed=0).cost().megabytes  # of transitions that are kept
    assert large.megabytes - nothing > 30 * (small.megabytes - nothing)


def test_a_long_run_is_announced_and_a_short_one_is_not(capsys):
    agent = RBLSPI(CAR, RBFGrid(12), seed=0)
    _say_cost(agent, 1000)
    assert not capsys.readouterr().err
    _say_cost(agent, 10_000_000)
    said = capsys.readouterr().err
    assert "435 weights take about" in said
    assert "a coarser basis" in said
    assert "All steps: " in said
