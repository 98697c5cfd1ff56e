from dataclasses import replace

import pytest

from rblspi.experiments.definitions import unique
from rblspi.reproduction.claims import CLAIMS
from rblspi.reproduction.figures import FIGURES, QUICK, quick


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


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_figure_has_the_same_curves_with_fewer_episodes(name):
    whole, short = FIGURES[name], quick(FIGURES[name])
    assert len(short.curves) == len(whole.curves)
    for a, b in zip(whole.curves, short.curves, strict=True):
        assert replace(b, episodes=a.episodes) == a
        assert b.episodes < a.episodes
