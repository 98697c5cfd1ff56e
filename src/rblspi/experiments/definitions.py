"""Curves, panels and figures: plain data that define runs and their presentation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Measure = Literal["length", "return"]

#: number of evenly spaced points of a run at which the greedy policy is evaluated
CHECKPOINTS = 10
#: seeds of every curve that come before further ones: enough for a first interval
AT_ONCE = 10
#: default number of points of a learning curve, and the most episodes in one of them
POINTS, LONGEST_BLOCK = 20, 100


@dataclass(frozen=True)
class Curve:
    """An algorithm with its settings, to be run with many seeds."""

    algorithm: str  # its name in `rblspi.registry`
    environment: str  # a Gymnasium id
    basis: Mapping[str, Any]  # its name under "basis", and its arguments; empty: the default
    settings: Mapping[str, Any]  # arguments of the algorithm, apart from the seed
    episodes: int = 0  # episodes of each run; 0 for an algorithm that learns from logged samples
    samples: int = 0  # samples logged for each run; 0 for an algorithm that learns online
    evaluation: int = 0  # greedy episodes at each of `CHECKPOINTS` places of a run
    label: str = ""  # text in the legend
    arguments: Mapping[str, Any] = field(default_factory=dict)  # arguments of the environment

    @property
    def plain(self) -> dict[str, Any]:
        """Everything that determines a run, apart from the seed and the code."""
        amount = {"episodes": self.episodes} if self.episodes else {"samples": self.samples}
        arguments = {"arguments": dict(self.arguments)} if self.arguments else {}
        return {
            "algorithm": self.algorithm,
            "environment": self.environment,
            "basis": dict(self.basis),
            "settings": dict(self.settings),
            **amount,
            **arguments,
            **({"evaluation": self.evaluation} if self.evaluation else {}),
        }

    @property
    def digest(self) -> str:
        """Key under which the runs are stored: equal settings have equal digests."""
        return hashlib.sha256(canonical(self.plain).encode()).hexdigest()[:32]

    @property
    def name(self) -> str:
        """The algorithm and its settings in one readable line."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.algorithm} on {self.place} ({settings})"

    @property
    def place(self) -> str:
        """The environment with its arguments, as a text."""
        if not self.arguments:
            return self.environment
        return f"{self.environment} {canonical(dict(self.arguments))}"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Group:
    """Panels under a common title, such as (a) and (b) in the paper."""

    title: str
    panels: tuple[Panel, ...]
    columns: int = 2


@dataclass(frozen=True)
class Figure:
    """The contents of a figure, and how they are drawn."""

    id: str  # the name on the command line and of the files
    title: str
    groups: tuple[Group, ...]
    measure: Measure = "length"  # number of steps or undiscounted return
    limits: tuple[float, float] | None = None  # of the vertical axis
    ticks: tuple[float, ...] = ()  # if given, the vertical axis is logarithmic and has these ticks
    block: int | None = None  # consecutive episodes in one point; by default as runs are long
    kind: str = "curves"  # the function that draws it; "curves" is a figure of learning curves
    caption: str = ""  # the text below it on the page; learning curves need none

    def block_of(self, episodes: int) -> int:
        """Episodes that are averaged into one point of a run; a curve has two points at least."""
        if self.block is None:
            return min(max(episodes // POINTS, 1), LONGEST_BLOCK)
        return min(self.block, max(episodes // 2, 1))

    @property
    def panels(self) -> list[Panel]:
        """All panels, in order."""
        return [panel for group in self.groups for panel in group.panels]

    @property
    def curves(self) -> list[Curve]:
        """All curves in order, without repetitions."""
        return unique(curve for panel in self.panels for curve in panel.curves)

    def changed(self, change: Callable[[Curve], Curve]) -> Self:
        """The same figure with every curve changed by a function."""

        def panel(old: Panel) -> Panel:
            return replace(old, curves=tuple(map(change, old.curves)))

        groups = (replace(g, panels=tuple(map(panel, g.panels))) for g in self.groups)
        return replace(self, groups=tuple(groups))

    def shortened(self, episodes: int, block: int) -> Self:
        """The same figure with fewer episodes per run and per point."""
        return replace(self.changed(lambda curve: replace(curve, episodes=episodes)), block=block)


@dataclass(frozen=True)
class Run:
    """A curve and a seed: the unit of work that a worker executes."""

    curve: Curve
    seed: int
    code: str = field(default="", compare=False)


def unique(curves: Iterable[Curve]) -> list[Curve]:
    """Drop curves with equal settings, keeping the first of each."""
    return list({curve.digest: curve for curve in reversed(list(curves))}.values())[::-1]


def in_order(curves: Sequence[Curve], runs: int, seconds: Mapping[str, float]) -> list[Run]:
    """List runs of each curve, with the seeds 0, 1, ..., in a useful order for an unfinished sweep.

    The first `AT_ONCE` seeds of every curve come before the next ones, and fast curves before slow
    ones. ``seconds`` has the expected time by digest. A curve without an expectation comes
    first.
    """
    cost = {curve.digest: seconds.get(curve.digest, 0.0) for curve in curves}
    order = [Run(curve, seed) for curve in curves for seed in range(runs)]
    return sorted(order, key=lambda run: (run.seed // AT_ONCE, cost[run.curve.digest]))


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
