"""Which claims are judged under which readings, on which runs.

A design changes one factor at a time around the default, and follows one source at a time. Its
curves are those that its claims ask for, and a reading shares with the default, and with other
readings, the runs of every curve that it leaves as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rblspi.experiments.definitions import Curve, Figure, Group, Panel, unique
from rblspi.experiments.judging import Claim, Evidence
from rblspi.experiments.results import SERIES, CurveResult
from rblspi.experiments.results_store import Record
from rblspi.reproduction.claims import FINAL, Scope, claims_within
from rblspi.reproduction.figures import CAR, CART_POLE, PUDDLES, SPARSE_CAR
from rblspi.reproduction.readings import (
    DEFAULT,
    SOURCES,
    Reading,
    one_at_a_time,
    read_as,
    rescoped,
)


@dataclass(frozen=True)
class Design:
    """Claims, how much of the paper they are judged on, and for how long and how often it runs."""

    claims: tuple[str, ...]  # ids; all claims if there are none
    scope: Scope = field(default_factory=Scope)
    #: only the first ones of a run, by environment; all of them unless given
    episodes: Mapping[str, int] = field(default_factory=dict)
    runs: int = 10
    readings: tuple[Reading, ...] = (*one_at_a_time(), *SOURCES.values())

    def judged(self, reading: Reading = DEFAULT) -> list[Claim]:
        """The claims, with the rules of the scope, as a reading has it."""
        claims = claims_within(rescoped(reading, self.scope))
        return [claim for claim in claims if not self.claims or claim.id in self.claims]

    def curve(self, reading: Reading, curve: Curve) -> Curve:
        """What is run in place of a curve of the paper."""
        changed = read_as(reading, curve)
        return replace(changed, episodes=self.episodes.get(curve.environment, curve.episodes))

    def curves(self, reading: Reading) -> list[Curve]:
        """All curves that the claims need under a reading."""
        return unique(
            self.curve(reading, curve) for claim in self.judged() for curve in needed_by(claim)
        )


#: claims that did not hold, or were undecided, after 20 to 100 runs of the default. The values of K
#: are the two ends of their range, the pendulum has its coarser grid, and cars and pole have 300
#: episodes instead of 1000 to 1500.
SMALL = Design(
    (
        *("chain-1", "chain-2", "car-2", "car-4", "car-5", "sparse-3"),
        *("pendulum-1", "pendulum-2", "pendulum-3", "pendulum-4", "pole-2", "puddle-1"),
    ),
    Scope(
        {
            CAR.environment: (20, "episode"),
            SPARSE_CAR.environment: (20,),
            PUDDLES.environment: (20,),
        },
        grids=(3,),
    ),
    {domain.environment: 300 for domain in (CAR, SPARSE_CAR, CART_POLE)},
)
#: every claim on whole runs of everything
FULL = Design(())


def parts(designs: Sequence[Design]) -> list[tuple[Figure, int]]:
    """All curves of some designs, as two figures to run and not to draw, with their runs.

    Runs on logged samples take a moment, so there are ten times as many of them. Claims are about
    whole blocks of `FINAL` episodes.
    """
    curves = unique(
        c for design in designs for reading in design.readings for c in design.curves(reading)
    )
    runs = max((design.runs for design in designs), default=0)
    offline, online = (
        tuple(curve for curve in curves if bool(curve.episodes) == learns_online)
        for learns_online in (False, True)
    )
    named = (("offline", offline, 10 * runs), ("online", online, runs))
    return [
        (Figure(name, name, (Group("", (Panel("", chosen),)),), block=FINAL), number)
        for name, chosen, number in named
        if chosen
    ]


def needed_by(claim: Claim) -> list[Curve]:
    """The curves that the rule of a claim asks for."""
    wishes = _Wishes()
    for _ in claim.findings(wishes):
        pass
    return list(wishes.asked.values())


class _Wishes(Evidence):
    """Evidence with invented runs of every curve, which remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(())
        self.asked: dict[str, Curve] = {}

    def of(self, curve: Curve) -> CurveResult:
        self.asked[curve.digest] = curve
        records = tuple(Record(seed, "", 0.0, 0, (), {}, "") for seed in range(2))
        if not curve.episodes:
            return CurveResult(curve, records, {}, (np.ones((1, 20, 2)),) * 2, True)
        arrays = {name: np.ones((2, curve.episodes)) for name in SERIES}
        return CurveResult(curve, records, arrays, (), True)
