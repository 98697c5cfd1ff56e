from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure as Drawing

from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.plotting import curves
from rblspi.plotting.curves import _strokes
from rblspi.plotting.page import write
from rblspi.plotting.style import BASELINES, LEARNERS
from rblspi.plotting.tables import CLIPPED
from tests.support.experiments import CURVES, FIGURE, figure_of, invented, records
from tests.support.third_party import installed


def test_words_of_a_user_s_file_are_not_markup(tmp_path):
    figure = replace(FIGURE, title="<script>alert(1)</script>", caption="<script>")
    page = write([invented(figure)], tmp_path, heading="<script>").read_text(encoding="utf-8")
    assert "<script" not in page


def test_a_figure_is_drawn_by_the_function_for_its_kind(tmp_path):
    drawn = []

    def draw(result):
        drawn.append(result)
        return Drawing()

    result = invented(replace(FIGURE, kind="pie", caption="A pie."))
    page = write([result], tmp_path, drawings={"pie": draw})
    assert drawn == [result]
    assert "A pie." in page.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"'small' has kind='pie': pass drawings="):
        write([result], tmp_path)


def test_an_algorithm_of_another_package_is_drawn_as_it_is_registered(tmp_path):
    other = replace(CURVES[0], algorithm="other", label="Other")
    with installed(tmp_path):
        strokes = _strokes(figure_of([CURVES[0], other]))
    assert strokes["Other"] in BASELINES
    assert strokes["rblspi"] in LEARNERS


def test_any_number_of_curves_can_be_drawn():
    figure = figure_of([replace(CURVES[0], label=str(i)) for i in range(100)])
    assert len(_strokes(figure)) == 100


def two_runs(figure):
    """Two runs that could hardly differ more: their interval would reach from -2799 to 3299."""
    lengths = np.array([[10] * 12, [490] * 12])
    arrays = {"length": lengths, "return": -1.0 * lengths}
    return FigureResult(
        figure, [CurveResult(curve, records(range(2)), arrays, (), True) for curve in CURVES]
    )


def test_bars_and_tables_show_possible_numbers_of_steps(tmp_path):
    result = two_runs(FIGURE)
    ax = curves.draw(result).axes[0]
    ends = np.concatenate([path.vertices[:, 1] for path in ax.collections[1].get_paths()])
    assert (ends.min(), ends.max()) == (1.0, 500.0)
    page = write([result], tmp_path).read_text(encoding="utf-8")
    assert "250.0 [1, 500.0]†" in page
    assert CLIPPED in page
    assert "as far as numbers are possible" in page


def test_returns_have_no_known_bounds(tmp_path):
    page = write([two_runs(replace(FIGURE, measure="return"))], tmp_path).read_text("utf-8")
    assert "[−3299, 2799]" in page
    assert CLIPPED not in page


def test_the_axes_are_as_long_as_the_longest_curve():
    short, long = CURVES[0], replace(CURVES[1], episodes=40)
    result = invented(figure_of([long], [short]))
    assert [ax.get_xlim()[1] > 40 for ax in curves.draw(result).axes] == [True, True]
