"""What the paper leaves open, as data: every open choice with the ways in which it can be read.

A *factor* is one choice, a *level* is one way to make it, and a *reading* is a level for some of
the factors. The first level of a factor is the default, which is what `figures` has.

Two defaults were chosen because of what comes out of them, before any other reading was tried: the
grid of the pendulum, which of three agrees best with what the paper says of alpha and beta, and
alpha / beta on the chain, which fits the paper's figure. No default was changed since.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rblspi.experiments.definitions import Curve
from rblspi.registry import nearest
from rblspi_paper.claims import Scope
from rblspi_paper.figures import CART_POLE, pendulum

Change = Callable[[Curve], Curve]
PENDULUM = pendulum(3).environment
POLE = CART_POLE.environment
CHAIN = "rblspi/ChainWalk-v0"

BELIEFBOX = "BeliefBox"
ABOUT_BELIEFBOX = (
    "BeliefBox (github.com/olethrosdc/beliefbox, as of December 2021) is C++ code by two of the "
    "authors, with online LSPI and the same domains. It does not have RBLSPI, and some of its "
    "numbers are not those of the paper: the noise of the pendulum, the angle at which the pole "
    "falls, where episodes start. Only what the paper leaves open is taken from it."
)
PAPER = "the paper's words"
LAGOUDAKIS = "Lagoudakis and Parr, 2003"
THEIR_CODE = "the code of Lagoudakis and Parr"
BUSONIU = "the published toolbox of Busoniu et al., 2010"
PRACTICE = "common practice"
OURS = "our choice"


@dataclass(frozen=True)
class Level:
    """One way to read an open choice: it changes what is run, or what claims are judged by."""

    name: str
    says: str
    source: str
    change: Change = lambda curve: curve
    rescope: Callable[[Scope], Scope] = lambda scope: scope


@dataclass(frozen=True)
class Factor:
    """A choice that the paper leaves open; the first level is the default."""

    name: str
    asks: str
    levels: tuple[Level, ...]

    @property
    def default(self) -> Level:
        """What the figures have."""
        return self.levels[0]


#: levels by the names of their factors; the other factors are at their defaults
Reading = Mapping[str, Level]
DEFAULT: Reading = {}


def name_of(reading: Reading) -> str:
    """A reading in words: ``centres=edge``, ``busoniu`` or ``default``."""
    for name, combined in SOURCES.items():
        if reading == combined:
            return name
    return in_full(reading) or "default"


def in_full(reading: Reading) -> str:
    """The factors of a reading with their levels."""
    return " + ".join(f"{factor}={level.name}" for factor, level in reading.items())


def read_as(reading: Reading, curve: Curve) -> Curve:
    """The curve that is run under a reading.

    Levels are applied in the order of `FACTORS`. A width of 1 in the units of the state depends on
    the range of the grid and on where its centres are, and what is counted on whether K = 500 is a
    number of transitions.
    """
    for name in FACTORS:
        if name in reading:
            curve = reading[name].change(curve)
    return curve


def rescoped(reading: Reading, scope: Scope) -> Scope:
    """What claims are judged by under a reading."""
    for level in reading.values():
        scope = level.rescope(scope)
    return scope


def parse(texts: Sequence[str]) -> Reading:
    """A reading from texts such as ``centres=edge``, or from the name of a source.

    Raises
    ------
    ValueError
        If there is no such factor, level or source, or a factor is given twice.
    """
    found: dict[str, Level] = {}
    for text in texts:
        for name, level in _parse_one(text).items():
            if name in found:
                raise ValueError(f"{name} is given twice: a reading has one level of each factor")
            found[name] = level
    return {
        name: found[name]
        for name, factor in FACTORS.items()
        if found.get(name, factor.default) != factor.default
    }


def _parse_one(text: str) -> Reading:
    name, equals, wanted = (part.strip() for part in text.partition("="))
    if not equals:
        if name in SOURCES:
            return SOURCES[name]
        raise ValueError(
            f"reading {text!r} must be FACTOR=LEVEL, for example centres=edge, or one of "
            f"{', '.join(SOURCES)}"
        )
    if name not in FACTORS:
        raise ValueError(f"the paper leaves no {name!r} open: {nearest(name, FACTORS)}")
    levels = {level.name: level for level in FACTORS[name].levels}
    if wanted not in levels:
        raise ValueError(f"{name} has no level {wanted!r}: {nearest(wanted, levels)}")
    return {name: levels[wanted]}


def one_at_a_time() -> list[Reading]:
    """The default, and every other level of every factor by itself."""
    others = [{f.name: level} for f in FACTORS.values() for level in f.levels[1:]]
    return [DEFAULT, *others]


def _from(source: str, environment: str = "") -> Reading:
    """Every level other than the default that comes from a source, in one environment or in all."""
    return {
        factor.name: replace(level, change=_only(environment, level.change))
        for factor in FACTORS.values()
        for level in factor.levels[1:]
        if source in level.source
    }


def _only(environment: str, change: Change) -> Change:
    """A change in one environment, or in all if none is named."""
    if not environment:
        return change
    return lambda curve: change(curve) if curve.environment == environment else curve


# How levels change a curve ----------------------------------------------------------------------


def _where(holds: Callable[[Curve], bool], field: str, **given: Any) -> Change:
    """Other entries in a field of the curves for which something holds."""

    def change(curve: Curve) -> Curve:
        if not holds(curve):
            return curve
        changed: dict[str, Any] = {field: {**getattr(curve, field), **given}}
        return replace(curve, **changed)

    return change


def _settings(algorithm: str, **given: Any) -> Change:
    """Other settings of one algorithm."""
    return _where(lambda curve: curve.algorithm == algorithm, "settings", **given)


def _arguments(environment: str, **given: Any) -> Change:
    """Other arguments of one environment."""
    return _where(lambda curve: curve.environment == environment, "arguments", **given)


def _basis(kind: str, environment: str = "", **given: Any) -> Change:
    """Other arguments of one kind of basis, in one environment or in all."""
    return _where(
        lambda curve: curve.basis["basis"] == kind and environment in ("", curve.environment),
        "basis",
        **given,
    )


def _range(environment: str, high: Sequence[float]) -> Change:
    """Another range of a grid, which is symmetric about 0."""
    return _basis("RBFGrid", environment, low=tuple(-v for v in high), high=tuple(high))


def _width_of_one(curve: Curve) -> Curve:
    """Standard deviations of 1 in the units of the pendulum, whatever the spacing of its grid."""
    if curve.environment != PENDULUM:
        return curve
    cells, low, high = (curve.basis[name] for name in ("cells", "low", "high"))
    edge = curve.basis.get("centres") == "edge"
    gaps = cells - 1 if edge else cells
    widths = tuple(gaps / (b - a) for a, b in zip(low, high, strict=True))
    return replace(curve, basis={**curve.basis, "width": widths})


def _alphas(factor: float) -> Change:
    """All values of alpha times a factor, except on the pendulum, for which the paper names 0.1."""

    def change(curve: Curve) -> Curve:
        if curve.algorithm != "rblspi" or curve.environment == PENDULUM:
            return curve
        alpha = float(f"{factor * curve.settings['prior_precision']:.12g}")
        settings = {**curve.settings, "prior_precision": alpha}
        return replace(curve, settings=settings, label=f"RBLSPI, α = {alpha:g}")

    return change


#: the first improvement after the first transition, where K is a number of transitions
_from_zero = _where(
    lambda curve: curve.algorithm == "rblspi" and curve.settings["update_every"] != "episode",
    "settings",
    first_update=1,
)
_literal_500 = _where(
    lambda curve: curve.settings.get("update_every") == "episode", "settings", update_every=500
)
_limit_ends = _where(lambda curve: curve.episodes > 0, "settings", limit_ends=True)

FACTORS: dict[str, Factor] = {
    factor.name: factor
    for factor in (
        Factor(
            "performance",
            "by what a setting is better than another",
            (
                Level("overall", "the mean over all episodes", f"{OURS}: the height of a curve"),
                Level(
                    "final",
                    "the mean over the last 100 episodes",
                    f"{OURS}: the end of a curve",
                    rescope=lambda scope: replace(scope, performance="final"),
                ),
            ),
        ),
        Factor(
            "centres",
            "where an equidistant grid of RBFs has its centres",
            (
                Level("cell", "in the middle of equal cells", f"{BELIEFBOX}, BasisSet.cc"),
                Level(
                    "edge",
                    "evenly spaced from bound to bound",
                    f"{BUSONIU}; {LAGOUDAKIS}, on the pendulum",
                    _basis("RBFGrid", centres="edge"),
                ),
            ),
        ),
        Factor(
            "pendulum-range",
            "which part of the state space the grid of the pendulum covers",
            (
                Level(
                    "45",
                    "angles to π/4, velocities to 1",
                    f"{OURS}: as far as the centres of Lagoudakis and Parr; of three grids it "
                    "agrees best with what the paper says of α and β",
                ),
                Level(
                    "90",
                    "angles to π/2, where the pendulum falls, and velocities to 2",
                    f"{PAPER}: a grid over the state space (the 2 is our choice)",
                    _range(PENDULUM, (math.pi / 2, 2.0)),
                ),
                Level(
                    "90-10",
                    "angles to π/2, velocities to 10",
                    f"{BELIEFBOX}, Pendulum.cc",
                    _range(PENDULUM, (math.pi / 2, 10.0)),
                ),
            ),
        ),
        Factor(
            "pole-range",
            "which velocities the grid of the cart pole covers",
            (
                Level("2.5", "to 2.5", OURS),
                Level(
                    "1.25",
                    "to 1.25, half as far",
                    OURS,
                    _range(POLE, (2.4, 1.25, math.pi / 6, 1.25)),
                ),
                Level(
                    "6",
                    "to 6",
                    f"{BELIEFBOX}, CartPole.cc",
                    _range(POLE, (2.4, 6.0, math.pi / 6, 6.0)),
                ),
            ),
        ),
        Factor(
            "width",
            "the standard deviation of an RBF",
            (
                Level("1", "the distance of neighbouring centres", f"{BELIEFBOX}, BasisSet.cc"),
                Level(
                    "0.71",
                    "the distance of neighbouring centres, divided by √2",
                    f"{BUSONIU}, whose RBFs are normalised besides",
                    _basis("RBFGrid", width=0.5**0.5),
                ),
                Level(
                    "half",
                    "half the distance of neighbouring centres",
                    PRACTICE,
                    _basis("RBFGrid", width=0.5),
                ),
                Level(
                    "unit",
                    "1 in the units of the state, on the pendulum only",
                    LAGOUDAKIS,
                    _width_of_one,
                ),
            ),
        ),
        Factor(
            "alphas",
            "which values of α the figures show, except on the pendulum",
            (
                Level("usual", "0.001, 0.01, 0.1, and 1 on the cars", OURS),
                Level("lower", "a tenth of these", OURS, _alphas(0.1)),
                Level("higher", "ten times these", OURS, _alphas(10.0)),
            ),
        ),
        Factor(
            "ridge",
            "what C starts at, where the paper has 0 and C has no inverse",
            (
                Level("1e-6", "10⁻⁶ I", OURS),
                Level("1e-3", "10⁻³ I", OURS, _settings("rblspi", ridge=1e-3)),
            ),
        ),
        Factor(
            "k500",
            "what K = 500 is",
            (
                Level("episode", "the end of the episode", f"{PAPER}: 500 (end of episode)"),
                Level(
                    "steps",
                    "500 transitions",
                    f"{OURS}: in Algorithm 1, K is a number of transitions",
                    _literal_500,
                ),
            ),
        ),
        Factor(
            "count",
            "after which transitions RBLSPI improves its policy",
            (
                Level("after", "after every K transitions", f"{PAPER} in the text"),
                Level(
                    "from-zero",
                    "after the first one and then every K, as t counts from 0",
                    f"{PAPER} in Algorithm 1",
                    _from_zero,
                ),
            ),
        ),
        Factor(
            "limit",
            "what the step limit does",
            (
                Level(
                    "truncates",
                    "the episode is cut; the value of its last state counts",
                    f"{BELIEFBOX}, tests/OnlineLSPI.cc",
                ),
                Level(
                    "ends",
                    "it ends an episode like a goal or a fall",
                    f"{PRACTICE} before libraries told the two apart",
                    _limit_ends,
                ),
            ),
        ),
        Factor(
            "epsilon",
            "how ε of online LSPI falls",
            (
                Level(
                    "fast",
                    "from 1, times 0.9968 every step",
                    f"{BELIEFBOX}, tests/OnlineLSPI.cc",
                ),
                Level(
                    "slow",
                    "from 1 to 0.05 in 24,000 steps, and on",
                    f"{BUSONIU}: its demonstration, in two minutes of 200 steps a second",
                    _settings("online-lspi", epsilon_decay=0.05 ** (1 / 24_000)),
                ),
                Level(
                    "constant",
                    "it stays at 0.1",
                    PRACTICE,
                    _settings("online-lspi", epsilon=0.1, epsilon_decay=1.0),
                ),
            ),
        ),
        Factor(
            "diagonal",
            "what A of online LSPI starts at",
            (
                Level("1e-6", "10⁻⁶ I", f"{BELIEFBOX}, OnlineLSPI.cc"),
                Level("1e-3", "10⁻³ I", BUSONIU, _settings("online-lspi", initial_diagonal=1e-3)),
            ),
        ),
        Factor(
            "pendulum-start",
            "where the pendulum starts",
            (
                Level("0.2", "angle and velocity uniform within 0.2", THEIR_CODE),
                Level(
                    "0.01",
                    "within 0.01",
                    f"{BELIEFBOX}, Pendulum.cc, whose velocities are within 0.001",
                    _arguments(PENDULUM, start=0.01),
                ),
            ),
        ),
        Factor(
            "integration",
            "how the pendulum is integrated",
            (
                Level(
                    "runge-kutta",
                    "one Runge-Kutta step of 0.1 s",
                    f"{OURS}: as the Euler steps of 0.01 s in {BELIEFBOX}, close to the solution",
                ),
                Level("euler", "one Euler step of 0.1 s", PRACTICE, _arguments(PENDULUM, order=1)),
            ),
        ),
        Factor(
            "pole-force",
            "what the cart is pushed with",
            (
                Level("10", "10 newtons", f"Barto, Sutton and Anderson, 1983; {BELIEFBOX}"),
                Level(
                    "1",
                    "1 newton",
                    f"{PAPER}: a force of +1 or -1",
                    _arguments(POLE, force=1.0),
                ),
            ),
        ),
        Factor(
            "chain-ratio",
            "α / β of BLSPI on the chain",
            (
                Level("0.01", "0.01", f"{OURS}: it fits the paper's figure"),
                Level("0.0001", "0.0001", OURS, _settings("blspi", prior_precision=1e-4)),
                Level("1", "1", OURS, _settings("blspi", prior_precision=1.0)),
            ),
        ),
        Factor(
            "chain-basis",
            "of what the polynomials on the chain are",
            (
                Level(
                    "half",
                    "of s / 2, where s is the number of the state",
                    f"{THEIR_CODE}, which the paper has used",
                ),
                Level(
                    "whole",
                    "of s",
                    f"{OURS}: the paper says only that the degree is 4",
                    _basis("Polynomial", CHAIN, scale=20.0),
                ),
            ),
        ),
    )
}

#: one source followed throughout, instead of one factor at a time
SOURCES: dict[str, Reading] = {
    "to-the-letter": _from(PAPER),
    "beliefbox": _from(BELIEFBOX),
    "lagoudakis-parr": _from(LAGOUDAKIS, PENDULUM),  # of the domains with a grid they have this one
    "busoniu": _from(BUSONIU),
}
