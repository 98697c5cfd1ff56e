from dataclasses import replace

from rblspi.experiments.definitions import Figure, in_order
from tests.support.experiments import CURVES


def test_the_digest_is_that_of_the_settings_and_not_of_the_label():
    first = CURVES[0]
    assert replace(first, label="other").digest == first.digest
    changed = replace(first, settings={**first.settings, "update_every": 21})
    shuffled = replace(first, settings=dict(reversed(first.settings.items())))
    assert changed.digest != first.digest
    assert shuffled.digest == first.digest


def test_ten_seeds_of_every_curve_come_first_and_the_shorter_before_the_longer():
    seconds = {CURVES[0].digest: 2.0, CURVES[1].digest: 1.0, CURVES[2].digest: 3.0}
    runs = in_order(CURVES, 15, seconds)
    assert len(runs) == 45
    assert all(run.seed < 10 for run in runs[:30])
    assert [run.curve for run in runs[:30]] == [CURVES[1]] * 10 + [CURVES[0]] * 10 + [
        CURVES[2]
    ] * 10
    assert all(run.seed >= 10 for run in runs[30:])


def test_a_learning_curve_is_never_a_single_dot():
    figure = Figure("one", "One", ())
    assert [figure.block_of(episodes) for episodes in (1, 2, 19, 40, 300, 1500, 10_000)] == [
        *(1, 1, 1, 2, 15, 75, 100)
    ]
    coarse = replace(figure, block=100)
    assert [coarse.block_of(episodes) for episodes in (1, 3, 60, 199, 200, 1500)] == [
        *(1, 1, 30, 99, 100, 100)
    ]
