"""What commands that run experiments share."""

import pytest

from rblspi.cli.running import Forecast


def test_a_run_takes_as_long_as_others_of_its_curve():
    forecast = Forecast({"short": 1.0, "long": 10.0})
    forecast.add("short", 1.0)
    assert forecast.seconds({"short": 3, "long": 2}) == pytest.approx(23.0)


def test_times_of_another_machine_count_by_how_much_slower_this_one_is():
    forecast = Forecast({"short": 1.0, "middle": 3.0, "long": 10.0})
    for digest, seconds in (("short", 2.0), ("short", 4.0), ("middle", 5.0)):
        forecast.add(digest, seconds)
    assert forecast.seconds({"long": 1}) == pytest.approx(20.0)
    assert forecast.seconds({"short": 2, "middle": 1}) == pytest.approx(11.0)


def test_a_curve_of_which_nothing_is_known_takes_as_long_as_the_others_on_average():
    forecast = Forecast({})
    forecast.add("one", 1.0)
    forecast.add("other", 2.0)
    assert forecast.seconds({"new": 2}) == pytest.approx(3.0)
