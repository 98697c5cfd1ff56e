import math

from rblspi.offline.estimates import Estimates
from rblspi.offline.influence import Estimate
from rblspi.plotting import style
from rblspi.plotting.estimates import draw

ROWS = (
    Estimate("one", 1.0, 0.0, 2.0),
    Estimate("two", 5.0, 4.0, 6.0),
    Estimate("wide", 1.5, -100.0, 100.0),
    Estimate("none", math.nan, -math.inf, math.inf),
)


def test_a_forest_plot_has_a_line_for_every_method_with_an_estimate():
    with style.style():
        (axes,) = draw(Estimates(ROWS, 0.95, ""), truth=3.0).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two", "wide"]
    low, high = axes.get_xlim()
    assert low < 0.0
    assert 6.0 < high < 20.0  # the wide interval ends in arrows
    assert {line.get_marker() for line in axes.lines} >= {"<", ">", "|", "o"}


def test_methods_that_disagree_are_red():
    with style.style():
        (axes,) = draw(Estimates(ROWS, 0.95, "")).axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    colours = [line.get_color() for line in points]
    assert colours == [style.VERMILLION, style.VERMILLION, style.BLUE]
