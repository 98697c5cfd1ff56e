"""The figures of the paper, as data.

Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy Iteration,
European Workshop on Reinforcement Learning, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rblspi.experiments.definitions import Curve, Figure, Group, Panel

Period = int | Literal["episode"]

#: K, the steps between policy improvements; the paper writes 500 for the end of an episode
PERIODS: tuple[Period, ...] = (20, 50, 100, "episode")
CAR_ALPHAS = (0.001, 0.01, 0.1, 1.0)
ALPHAS = (0.001, 0.01, 0.1)


class Domain(NamedTuple):
    """An environment with its basis, its discount and the number of episodes of a run."""

    environment: str
    basis: Mapping[str, Any]
    discount: float
    episodes: int


CAR = Domain("rblspi/MountainCar-v0", {"basis": "RBFGrid", "cells": 8}, 0.99, 1500)
SPARSE_CAR = CAR._replace(environment="rblspi/SparseMountainCar-v0")
PUDDLES = Domain("rblspi/PuddleWorld-v0", {"basis": "RBFGrid", "cells": 8}, 0.99, 1000)
CART_POLE = Domain(
    "rblspi/CartPole-v0",
    {
        "basis": "RBFGrid",
        "cells": 3,
        "low": (-2.4, -2.5, -math.pi / 6, -2.5),
        "high": (2.4, 2.5, math.pi / 6, 2.5),
    },
    0.99,
    1000,
)


def pendulum(cells: int) -> Domain:
    """The inverted pendulum with a grid of ``cells`` by ``cells`` Gaussians."""
    high = (math.pi / 4, 1.0)
    basis = {"basis": "RBFGrid", "cells": cells, "low": (-high[0], -high[1]), "high": high}
    return Domain("rblspi/InvertedPendulum-v0", basis, 0.95, 2000)


def rblspi(domain: Domain, period: Period, alpha: float, beta: float) -> Curve:
    """A curve of RBLSPI."""
    precisions = {"prior_precision": alpha, "noise_precision": beta}
    return _curve("rblspi", domain, period, precisions, f"RBLSPI, α = {alpha:g}")


def online_lspi(
    domain: Domain, period: Period, on_policy: bool = True, label: str = "online LSPI"
) -> Curve:
    """A curve of the baseline, online LSPI with epsilon-greedy exploration."""
    return _curve("online-lspi", domain, period, {"on_policy": on_policy}, label)


def _curve(name: str, domain: Domain, period: Period, own: Mapping[str, Any], label: str) -> Curve:
    settings = {**own, "update_every": period, "discount": domain.discount}
    return Curve(name, domain.environment, domain.basis, settings, domain.episodes, label=label)


def _by_period(
    domain: Domain, title: str, beta: float, alphas: Sequence[float], baselines: Mapping[bool, str]
) -> Group:
    """A panel for every K; the baselines have labels by whether they evaluate on-policy."""
    panels = (
        Panel(
            "K = 500 (end of episode)" if period == "episode" else f"K = {period}",
            (
                *(rblspi(domain, period, alpha, beta) for alpha in alphas),
                *(online_lspi(domain, period, on, label) for on, label in baselines.items()),
            ),
        )
        for period in PERIODS
    )
    return Group(title, tuple(panels))


def _by_beta(domain: Domain, title: str, betas: Sequence[float]) -> Group:
    """A panel for every beta, at K = 20."""
    panels = (
        Panel(
            f"β = {beta:g}",
            (*(rblspi(domain, 20, alpha, beta) for alpha in ALPHAS), online_lspi(domain, 20)),
        )
        for beta in betas
    )
    return Group(title, tuple(panels))


#: how figures of the cars are drawn; the best policy needs 98 steps, and the step limit is 500
_CARS: dict[str, Any] = {
    "limits": (90.0, 530.0),
    "ticks": (100.0, 150.0, 200.0, 300.0, 500.0),
    "block": 100,
}
_ON = {True: "online LSPI"}
_BOTH = {True: "online LSPI, on-policy", False: "online LSPI, off-policy"}

_CHAIN: dict[str, Any] = {
    "environment": "rblspi/ChainWalk-v0",
    "basis": {"basis": "Polynomial", "degree": 4, "scale": 10.0, "low": -1.0, "high": 19.0},
    "samples": 5000,
}
LSPI = Curve("lspi", **_CHAIN, settings={"discount": 0.9}, label="LSPI")
BLSPI = Curve(
    "blspi",
    **_CHAIN,
    settings={"discount": 0.9, "prior_precision": 0.01, "noise_precision": 1.0},
    label="BLSPI",
)

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for figure in (
        Figure(
            "chain",
            "Chain walk: BLSPI and LSPI on the same 5000 samples",
            (Group("", (Panel("BLSPI", (BLSPI,)), Panel("LSPI", (LSPI,)))),),
            kind="chain",
            caption="Stripes: the policy after each improvement, the estimated one above the exact "
            "one. Lines: values of the policy under evaluation, estimated and exact. Both "
            "algorithms see the same samples: of all sample sets, the one in which the largest "
            "difference of their values is the median.",
        ),
        Figure(
            "main",
            "Mountain car, standard and sparse",
            (
                _by_period(CAR, "(a) Mountain car, β = 0.1", 0.1, CAR_ALPHAS, _ON),
                _by_period(SPARSE_CAR, "(b) Sparse mountain car, β = 1000", 1e3, CAR_ALPHAS, _ON),
            ),
            **_CARS,
        ),
        Figure(
            "mountain-car",
            "Mountain car",
            (
                _by_period(CAR, "(a) β = 0.1", 0.1, CAR_ALPHAS, _ON),
                _by_period(CAR, "(b) β = 1", 1.0, CAR_ALPHAS, _ON),
            ),
            **_CARS,
        ),
        Figure(
            "sparse-mountain-car",
            "Sparse mountain car",
            (
                _by_period(SPARSE_CAR, "(a) β = 100", 100.0, CAR_ALPHAS, _ON),
                _by_period(SPARSE_CAR, "(b) β = 1000", 1e3, CAR_ALPHAS, _ON),
            ),
            **_CARS,
        ),
        Figure(
            "pendulum",
            "Inverted pendulum",
            (
                _by_beta(pendulum(3), "(a) 3 × 3 RBFs", (1.0, 10.0)),
                _by_beta(pendulum(5), "(b) 5 × 5 RBFs", (1.0, 10.0)),
            ),
            limits=(0.0, 3100.0),
            block=100,
        ),
        Figure(
            "cart-pole",
            "Cart pole",
            (_by_beta(CART_POLE, "", (0.1, 1.0)),),
            limits=(0.0, 515.0),
            block=100,
        ),
        Figure(
            "puddle-world",
            "Puddle world",
            (
                _by_period(PUDDLES, "(a) β = 0.1", 0.1, ALPHAS, _BOTH),
                _by_period(PUDDLES, "(b) β = 1", 1.0, ALPHAS, _BOTH),
            ),
            measure="return",
            block=100,
        ),
    )
}

#: runs of a curve in the quick version of a figure: more where short runs can decide a claim
QUICK_RUNS = {"chain": 60, "pendulum": 10}
OTHER_QUICK_RUNS = 3
#: episodes of a run, and of a point, in the quick version of a figure; a claim about the pendulum
#: is about its first 300 episodes
QUICK = {
    **dict.fromkeys(("main", "mountain-car", "sparse-mountain-car", "cart-pole"), (200, 25)),
    "pendulum": (300, 25),
    "puddle-world": (200, 25),
}


def quick(figure: Figure) -> Figure:
    """A version of the figure that takes minutes instead of hours."""
    return figure.shortened(*QUICK[figure.id]) if figure.id in QUICK else figure


def quick_runs(figure: Figure) -> int:
    """How many runs of every curve the quick version of a figure has."""
    return QUICK_RUNS.get(figure.id, OTHER_QUICK_RUNS)
