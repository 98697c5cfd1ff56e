from dataclasses import replace

import pytest

from rblspi.experiments.claims import CLAIMS
from rblspi.experiments.definitions import in_order, unique
from rblspi.experiments.paper import FIGURES, QUICK, quick
from tests.experiments.small import CURVES


def test_every_figure_of_the_paper_is_there_with_all_its_settings():
    sizes = {name: len(figure.curves) for name, figure in FIGURES.items()}
    assert sizes == {
        "chain": 2,
        "main": 4 * (4 + 1) + 4 * (4 + 1),
        "mountain-car": 2 * 4 * 4 + 4,
        "sparse-mountain-car": 2 * 4 * 4 + 4,
        "pendulum": 2 * (2 * 3 + 1),
        "cart-pole": 2 * 3 + 1,
        "puddle-world": 2 * 4 * 3 + 2 * 4,
    }
    everything = unique(curve for figure in FIGURES.values() for curve in figure.curves)
    assert len(everything) == 2 + 36 + 36 + 14 + 7 + 32


def test_every_claim_belongs_to_a_figure_and_has_a_name_of_its_own():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 20
    assert {claim.figure for claim in CLAIMS} <= set(FIGURES)


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


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_figure_has_the_same_curves_with_fewer_episodes(name):
    whole, short = FIGURES[name], quick(FIGURES[name])
    assert len(short.curves) == len(whole.curves)
    for a, b in zip(whole.curves, short.curves, strict=True):
        assert replace(b, episodes=a.episodes) == a
        assert b.episodes < a.episodes
