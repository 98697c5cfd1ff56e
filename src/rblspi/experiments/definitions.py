"""What a curve, a panel and a figure are: plain data, written down before anything runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Measure = Literal["length", "return"]

#: algorithms that learn online, by episodes, and those that learn from logged samples
ONLINE = ("rblspi", "online-lspi")
OFFLINE = ("lspi", "blspi")


@dataclass(frozen=True)
class Curve:
    """One setting of one algorithm, to be run with many seeds.

    Attributes
    ----------
    algorithm : str
        One of `ONLINE` or `OFFLINE`.
    environment : str
        A Gymnasium id.
    basis : mapping
        Name of the basis under ``"basis"`` and its arguments.
    settings : mapping
        Arguments of the algorithm, apart from the seed.
    episodes : int
        Of every run; 0 for an algorithm that learns from logged samples.
    samples : int
        Logged for every run; 0 for an algorithm that learns online.
    label : str
        In the legend.
    """

    algorithm: str
    environment: str
    basis: Mapping[str, Any]
    settings: Mapping[str, Any]
    episodes: int = 0
    samples: int = 0
    label: str = ""

    @property
    def plain(self) -> dict[str, Any]:
        """Everything that determines a run, apart from the seed and the code."""
        amount = {"episodes": self.episodes} if self.episodes else {"samples": self.samples}
        return {
            "algorithm": self.algorithm,
            "environment": self.environment,
            "basis": dict(self.basis),
            "settings": dict(self.settings),
            **amount,
        }

    @property
    def digest(self) -> str:
        """Under which the runs of this curve are kept: equal settings, equal digest."""
        return hashlib.sha256(canonical(self.plain).encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """Settings in a line that a person can read."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.algorithm} on {self.environment} ({settings})"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Group:
    """Panels that stand together under one title, as (a) and (b) in the paper."""

    title: str
    panels: tuple[Panel, ...]
    columns: int = 2


@dataclass(frozen=True)
class Figure:
    """A figure: what is drawn, and how episodes are counted.

    Attributes
    ----------
    id : str
        What the user types.
    title : str
    groups : tuple of Group
    measure : {"length", "return"}
        Of an episode: steps or undiscounted return.
    limits : pair of float, optional
        Of the vertical axis.
    ticks : tuple of float
        If given, the vertical axis is logarithmic, with these ticks.
    block : int
        Episodes that make one point.
    full_episodes : int
        Episodes of the paper's own runs: shorter ones decide no claim.
    kind : {"curves", "chain"}
        How it is drawn.
    """

    id: str
    title: str
    groups: tuple[Group, ...]
    measure: Measure = "length"
    limits: tuple[float, float] | None = None
    ticks: tuple[float, ...] = ()
    block: int = 100
    full_episodes: int = 0
    kind: Literal["curves", "chain"] = "curves"

    @property
    def panels(self) -> Iterator[Panel]:
        """All panels, in order."""
        for group in self.groups:
            yield from group.panels

    @property
    def curves(self) -> list[Curve]:
        """All curves, each setting once, in order."""
        return unique(curve for panel in self.panels for curve in panel.curves)

    def shortened(self, episodes: int, block: int) -> Self:
        """The same figure from fewer episodes, with points of fewer."""
        if not episodes:
            return self
        groups = tuple(
            replace(
                group,
                panels=tuple(
                    replace(
                        panel,
                        curves=tuple(replace(curve, episodes=episodes) for curve in panel.curves),
                    )
                    for panel in group.panels
                ),
            )
            for group in self.groups
        )
        return replace(self, groups=groups, block=block)


@dataclass(frozen=True)
class Run:
    """One curve with one seed: what a worker is given."""

    curve: Curve
    seed: int
    code: str = field(default="", compare=False)


def unique(curves: Iterable[Curve]) -> list[Curve]:
    """Each setting once; the first label stays."""
    return list({curve.digest: curve for curve in reversed(list(curves))}.values())[::-1]


def in_order(curves: Sequence[Curve], runs: int, seconds: Mapping[str, float]) -> list[Run]:
    """All runs in an order that makes an unfinished sweep useful.

    Ten seeds of every curve come before the next ten, and the shorter ones first.

    Parameters
    ----------
    curves : sequence of Curve
    runs : int
        Seeds 0, 1, ..., runs - 1, the same for every curve.
    seconds : mapping
        Expected time of a run, by the curve's digest; 0 where nothing is known.
    """
    cost = {curve.digest: seconds.get(curve.digest, 0.0) for curve in curves}
    order = [Run(curve, seed) for curve in curves for seed in range(runs)]
    return sorted(order, key=lambda run: (run.seed // 10, cost[run.curve.digest]))


def canonical(value: Any) -> str:
    """JSON with one spelling for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
