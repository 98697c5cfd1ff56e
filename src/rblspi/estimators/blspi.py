"""Bayesian least-squares policy iteration: evaluate by BLSTD, improve greedily, repeat."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi import check
from rblspi.estimators.blstd import Bayesian
from rblspi.estimators.iteration import Improvement
from rblspi.estimators.policy_iteration import PolicyIteration
from rblspi.estimators.rules import Pessimistic, Policy
from rblspi.features import BasisLike
from rblspi.statistics import Statistics


class BLSPI(Bayesian, PolicyIteration):
    """A policy from logged transitions, and the posterior of its values.

    As `LSPI`, but every policy is evaluated by `BLSTD`, and the next one is greedy in the
    posterior mean, or in what is below it by c standard deviations:

        pi(s) = argmax_a phi(s, a)'m - c (phi(s, a)'S phi(s, a))^1/2

    Parameters
    ----------
    basis : Basis, callable or transformer
        phi of a state; every action has its own block of weights.
    actions : int
        The number of actions.
    discount : float
        gamma.
    prior_precision, noise_precision : float
        alpha and beta.
    pessimism : float
        c: the more, the less the policy relies on actions of which the data say little. 0 or
        more. The values themselves, `predict`, stay those of the mean.
    max_iterations : int
        Policies to evaluate at the most.
    tolerance : float
        Stop when |m - m_before| is at most this multiple of |m|.
    initial_policy : callable, optional
        From a batch of observations to actions; the first action everywhere unless given.
    ridge : float
        C starts at this multiple of the identity: it has to have an inverse.
    observation_space : gymnasium.Space, optional
        What the basis is built for. Unless given, the data's range of observations, where the
        basis has no bounds of its own.

    Attributes
    ----------
    posterior_ : Posterior
        Of the last policy evaluated.
    weights_ : ndarray, shape (k,)
        Its mean m.
    history_ : list of Iteration
    n_iter_ : int
    converged_ : bool
        Whether the policy stayed the same, or the weights nearly so.
    cycle_ : int
        How many policies follow one another for ever; 0 if that is not so.
    statistics_ : Statistics
        The sums of the last policy evaluated.
    rank_ : int
        Rank of A: how many of the weights the data determine, and not only the prior.
    condition_ : float
        Condition number of the posterior's covariance, scaled to a diagonal of ones.
    features_ : Features

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    def __init__(
        self,
        basis: BasisLike,
        actions: int,
        *,
        discount: float = 0.99,
        prior_precision: float = 0.01,
        noise_precision: float = 1.0,
        pessimism: float = 0.0,
        max_iterations: int = 20,
        tolerance: float = 1e-6,
        initial_policy: Policy | None = None,
        ridge: float = 1e-6,
        observation_space: gym.Space[Any] | None = None,
    ) -> None:
        self.basis = basis
        self.actions = actions
        self.discount = discount
        self.prior_precision = prior_precision
        self.noise_precision = noise_precision
        self.pessimism = pessimism
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.initial_policy = initial_policy
        self.ridge = ridge
        self.observation_space = observation_space

    def act(self, observations: ArrayLike) -> NDArray[np.int64]:
        """Actions in a batch of observations, shape (N,), or in one; first ones if tied."""
        if not self.pessimism:
            return super().act(observations)
        mean, std = self.predict(observations, return_std=True)
        actions: NDArray[np.int64] = (mean - self.pessimism * std).argmax(axis=-1)
        return actions

    def _check(self) -> None:
        super()._check()
        if self.pessimism != 0.0:
            check.positive("pessimism", self.pessimism)

    def _improve(self, statistics: Statistics) -> Improvement:
        if not self.pessimism:
            return super()._improve(statistics)
        posterior = self._posterior(statistics)
        return Improvement(posterior.mean, Pessimistic(posterior, self.pessimism))
