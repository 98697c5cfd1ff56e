"""The paper's domains with a setting that learns, for tests that go over all of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

from rblspi import Polynomial, RBFGrid


class Domain(NamedTuple):
    id: str
    basis: Any
    settings: dict[str, float]


PENDULUM = RBFGrid(3, low=(-math.pi / 4, -1.0), high=(math.pi / 4, 1.0))
CART_POLE = RBFGrid(3, low=(-2.4, -2.5, -math.pi / 6, -2.5), high=(2.4, 2.5, math.pi / 6, 2.5))
CHAIN = Polynomial(4, scale=10.0, low=-1.0, high=19.0)


def _domain(name: str, basis: Any, discount: float, alpha: float, beta: float) -> Domain:
    settings = {"discount": discount, "prior_precision": alpha, "noise_precision": beta}
    return Domain(f"rblspi/{name}-v0", basis, settings)


DOMAINS = {
    domain.id.split("/")[1]: domain
    for domain in (
        _domain("ChainWalk", CHAIN, 0.9, 0.01, 1.0),
        _domain("MountainCar", RBFGrid(8), 0.99, 0.001, 0.1),
        _domain("SparseMountainCar", RBFGrid(8), 0.99, 1.0, 1000.0),
        _domain("InvertedPendulum", PENDULUM, 0.95, 10.0, 100.0),
        _domain("CartPole", CART_POLE, 0.99, 0.01, 0.1),
        _domain("PuddleWorld", RBFGrid(8), 0.99, 0.001, 1.0),
    )
}


def quick_on(*names: str) -> list[Any]:
    """All domains as parameters of a test, which is slow but for the domains of these names."""
    return [
        pytest.param(domain, id=name, marks=() if name in names else pytest.mark.slow)
        for name, domain in DOMAINS.items()
    ]
