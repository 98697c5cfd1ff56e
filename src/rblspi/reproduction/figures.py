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
    settings = {
        "prior_precision": alpha,
        "noise_precision": beta,
        "update_every": period,
        "discount": domain.discount,
    }
    return Curve(
        "rblspi",
        domain.environment,
        domain.basis,
        settings,
        domain.episodes,
        label=f"RBLSPI, α = {alpha:g}",
    )


def online_lspi(
    domain: Domain, period: Period, on_policy: bool = True, label: str = "online LSPI"
) -> Curve:
    """A curve of the baseline, online LSPI with epsilon-greedy exploration."""
    settings = {"on_policy": on_policy, "update_every": period, "discount": domain.discount}
    return Curve(
        "online-lspi",
        domain.environment,
        domain.basis,
        settings,
        domain.episodes,
        label=label,
    )


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


def _by_beta(domain: Domain, title: str, betas: Sequence[float], columns: int) -> Group:
    """A panel for every beta, at K = 20."""
    panels = (
        Panel(
            f"β = {beta:g}",
            (*(rblspi(domain, 20, alpha, beta) for alpha in ALPHAS), online_lspi(domain, 20)),
        )
        for beta in betas
    )
    return Group(title, tuple(panels), columns)


#: the best policy needs 98 steps, and the step limit is 500
CAR_LIMITS, CAR_TICKS = (90.0, 530.0), (100.0, 150.0, 200.0, 300.0, 500.0)
ON = {True: "online LSPI"}
BOTH = {True: "online LSPI, on-policy", False: "online LSPI, off-policy"}

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
                _by_period(CAR, "(a) Mountain car, β = 0.1", 0.1, CAR_ALPHAS, ON),
                _by_period(SPARSE_CAR, "(b) Sparse mountain car, β = 1000", 1000.0, CAR_ALPHAS, ON),
            ),
            limits=CAR_LIMITS,
            ticks=CAR_TICKS,
            full_episodes=1500,
        ),
        Figure(
            "mountain-car",
            "Mountain car",
            tuple(
                _by_period(CAR, f"({letter}) β = {beta:g}", beta, CAR_ALPHAS, ON)
                for letter, beta in zip("ab", (0.1, 1.0), strict=True)
            ),
            limits=CAR_LIMITS,
            ticks=CAR_TICKS,
            full_episodes=1500,
        ),
        Figure(
            "sparse-mountain-car",
            "Sparse mountain car",
            tuple(
                _by_period(SPARSE_CAR, f"({letter}) β = {beta:g}", beta, CAR_ALPHAS, ON)
                for letter, beta in zip("ab", (100.0, 1000.0), strict=True)
            ),
            limits=CAR_LIMITS,
            ticks=CAR_TICKS,
            full_episodes=1500,
        ),
        Figure(
            "pendulum",
            "Inverted pendulum",
            tuple(
                _by_beta(pendulum(cells), f"({letter}) {cells} × {cells} RBFs", (1.0, 10.0), 2)
                for letter, cells in zip("ab", (3, 5), strict=True)
            ),
            limits=(0.0, 3100.0),
            full_episodes=2000,
        ),
        Figure(
            "cart-pole",
            "Cart pole",
            (_by_beta(CART_POLE, "", (0.1, 1.0), 2),),
            limits=(0.0, 515.0),
            full_episodes=1000,
        ),
        Figure(
            "puddle-world",
            "Puddle world",
            tuple(
                _by_period(PUDDLES, f"({letter}) β = {beta:g}", beta, ALPHAS, BOTH)
                for letter, beta in zip("ab", (0.1, 1.0), strict=True)
            ),
            measure="return",
            full_episodes=1000,
        ),
    )
}


class Size(NamedTuple):
    """Episodes of a run, and of a point, in a quick version of a figure."""

    episodes: int
    block: int


QUICK_RUNS = 3
QUICK = {
    "main": Size(300, 50),
    "mountain-car": Size(300, 50),
    "sparse-mountain-car": Size(300, 50),
    "pendulum": Size(200, 25),
    "cart-pole": Size(300, 50),
    "puddle-world": Size(200, 25),
}


def quick(figure: Figure) -> Figure:
    """A version of the figure that takes minutes instead of hours."""
    size = QUICK.get(figure.id)
    return figure.shortened(*size) if size else figure
