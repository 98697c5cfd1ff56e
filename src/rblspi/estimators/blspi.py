"""Bayesian least-squares policy iteration: evaluate by BLSTD, improve greedily, repeat."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rblspi.estimators.blstd import Bayesian
from rblspi.estimators.policy_iteration import PolicyIteration
from rblspi.estimators.rules import Policy
from rblspi.features import BasisLike


class BLSPI(Bayesian, PolicyIteration):
    """A policy from logged transitions, and the posterior of its values.

    As `LSPI`, but every policy is evaluated by `BLSTD`, and the next one is greedy in the
    posterior mean: pi(s) = argmax_a phi(s, a)'m.

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
        Its mean m; `act` is greedy in it.
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
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.initial_policy = initial_policy
        self.ridge = ridge
        self.observation_space = observation_space
