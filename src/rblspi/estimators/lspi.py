"""Least-squares policy iteration: evaluate by LSTD, improve greedily, repeat."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rblspi.estimators.lstd import LeastSquares
from rblspi.estimators.policy_iteration import PolicyIteration
from rblspi.estimators.rules import Policy
from rblspi.features import BasisLike


class LSPI(LeastSquares, PolicyIteration):
    """A policy from logged transitions, by least-squares policy iteration.

    For each policy pi in turn, over all transitions,

        A theta = b,    A = sum phi(s, a) (phi(s, a) - gamma phi(s', pi(s')))',
                        b = sum phi(s, a) r,

    and the next policy is pi(s) = argmax_a phi(s, a)'theta.

    Parameters
    ----------
    basis : Basis, callable or transformer
        phi of a state; every action has its own block of weights.
    actions : int
        The number of actions.
    discount : float
        gamma.
    max_iterations : int
        Policies to evaluate at the most.
    tolerance : float
        Stop when |theta - theta_before| is at most this multiple of |theta|.
    initial_policy : callable, optional
        From a batch of observations to actions; the first action everywhere unless given.
    ridge : float
        A starts at this multiple of the identity; 0 or more.
    observation_space : gymnasium.Space, optional
        What the basis is built for. Unless given, the data's range of observations, where the
        basis has no bounds of its own.

    Attributes
    ----------
    weights_ : ndarray, shape (k,)
        theta of the last policy evaluated; `act` is greedy in them.
    history_ : list of Iteration
    n_iter_ : int
    converged_ : bool
        Whether the policy stayed the same, or the weights nearly so.
    cycle_ : int
        How many policies follow one another for ever; 0 if that is not so.
    statistics_ : Statistics
        The sums of the last policy evaluated.
    rank_ : int
        Rank of A: how many of the weights the data determine.
    condition_ : float
        Condition number of the system that was solved last.
    features_ : Features

    References
    ----------
    M. G. Lagoudakis and R. Parr (2003). Least-squares policy iteration. Journal of Machine
    Learning Research 4.
    """

    _bayesian = "BLSPI"

    def __init__(
        self,
        basis: BasisLike,
        actions: int,
        *,
        discount: float = 0.99,
        max_iterations: int = 20,
        tolerance: float = 1e-6,
        initial_policy: Policy | None = None,
        ridge: float = 1e-6,
        observation_space: gym.Space[Any] | None = None,
    ) -> None:
        self.basis = basis
        self.actions = actions
        self.discount = discount
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.initial_policy = initial_policy
        self.ridge = ridge
        self.observation_space = observation_space
