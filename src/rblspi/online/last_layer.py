"""Bayesian regression of the last layer of a network on what an agent remembers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from rblspi.core.types import Array, Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import Features
from rblspi.online.deep_q import LEARNT_AT, TRANSITIONS, DeepQ
from rblspi.policies.choice import masked

#: steps between two regressions, each of which takes as long as some hundred steps
REGRESS_EVERY = 1000
#: transitions for a regression, evenly spaced among those that are remembered
REGRESSED = 20_000
#: weight of the prior along every feature, in transitions
PRIOR_WEIGHT = 1.0


class LastLayer(NamedTuple):
    """theta_a ~ N(mean_a, noise^2 (R_a'R_a)^-1) for every action."""

    mean: Matrix  # (actions, n)
    factors: Array  # R_a, upper triangles  (actions, n, n)
    noise_std: float

    def draw(self, rng: np.random.Generator) -> Matrix:
        """A sample of the weights, shape (actions, n)."""
        noise = self.noise_std * rng.standard_normal(self.mean.shape)
        pairs = zip(self.factors, noise, strict=True)
        drawn: Matrix = self.mean + np.stack([solve_triangular(*pair) for pair in pairs])
        return drawn


def is_due(agent: DeepQ) -> bool:
    """Whether `REGRESS_EVERY` steps are over since the last time of learning."""
    counters = agent.state.counters
    return bool(counters[TRANSITIONS] // REGRESS_EVERY > counters[LEARNT_AT] // REGRESS_EVERY)


def regress_network(agent: DeepQ) -> LastLayer:
    """The regression on what an agent remembers, around the weights by which it acts."""
    log = agent.session.memory.transitions(agent.features.shape, REGRESSED)
    network = agent.state.weights.reshape(agent.actions, -1)
    return regress(log, agent.features, agent.discount, network)


def regress(log: Transitions, features: Features, discount: float, network: Matrix) -> LastLayer:
    """Regress y = r + gamma max_a' phi(s')'u_a' on phi(s), around the weights u of the network.

    With X the features of the transitions of action a, and lambda the weight of the prior,

        R_a'R_a = X'X + lambda I,    mean_a = u_a + (R_a'R_a)^-1 X'(y - X u_a),

    and noise^2 is the mean square of what the regression leaves.
    """
    y = features(log.next_observations)
    ahead = masked(y @ network.T, log.next_allowed).max(axis=1)
    targets = log.rewards + discount * np.where(log.terminated, 0.0, ahead)
    x, left, means, factors = features(log.observations), 0.0, [], []
    for a, weights in enumerate(network):
        rows = log.actions == a
        error = targets[rows] - x[rows] @ weights
        factor = cholesky(x[rows].T @ x[rows] + PRIOR_WEIGHT * np.eye(features.size))
        whitened = solve_triangular(factor, x[rows].T @ error, trans=1)
        change = solve_triangular(factor, whitened)
        left += float(np.sum((error - x[rows] @ change) ** 2))
        means.append(weights + change)
        factors.append(factor)
    return LastLayer(np.stack(means), np.stack(factors), float(np.sqrt(left / log.size)))
