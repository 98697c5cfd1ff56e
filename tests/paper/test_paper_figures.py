from dataclasses import replace

import numpy as np
import pytest

from rblspi.experiments.definitions import unique
from rblspi.experiments.judging import Evidence
from rblspi.experiments.results import CurveResult
from rblspi.experiments.tasks import SERIES
from rblspi_paper.claims import CLAIMS
from rblspi_paper.figures import FIGURES, QUICK, quick
from tests.support.experiments import records


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


class Wishes(Evidence):
    """Evidence with invented runs of every curve, which remembers what it was asked for."""

    def __init__(self):
        super().__init__(())
        self.asked = set()

    def of(self, curve):
        self.asked.add(curve.digest)
        arrays = {name: np.ones((2, curve.episodes)) for name in SERIES}
        tables = () if curve.episodes else (np.ones((1, 20, 2)),) * 2
        return CurveResult(curve, records(range(2)), arrays, tables, True)


def test_claims_ask_for_all_curves_of_the_paper_and_for_no_others():
    wishes = Wishes()
    for claim in CLAIMS:
        assert list(claim.findings(wishes))
    assert wishes.asked == {c.digest for f in FIGURES.values() for c in f.curves}
