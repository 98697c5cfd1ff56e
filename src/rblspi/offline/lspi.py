"""Least-squares policy iteration: evaluate by LSTD, improve greedily, repeat."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import gymnasium as gym

from rblspi.data.columns import Columns
from rblspi.features import BasisLike
from rblspi.offline.lstd import LeastSquares
from rblspi.offline.policy_iteration import PolicyIteration
from rblspi.policies.given import PolicyFunction


@dataclass(eq=False, repr=False)
class LSPI(LeastSquares, PolicyIteration):
    """A policy from logged transitions, by least-squares policy iteration.

    For each policy pi in turn, over all transitions,

        A theta = b,    A = sum phi(s, a) (phi(s, a) - gamma phi(s', pi(s')))',
                        b = sum phi(s, a) r,

    and the next policy is pi(s) = argmax_a phi(s, a)'theta.

    Parameters
    ----------
    basis : Basis, callable or transformer, optional
        phi. By default it is chosen by held-out episodes, see `rblspi.offline.model_selection`.
    actions : int, optional
        The number of actions. By default as many as there are in the data.
    discount, ridge, observation_space, columns
        As for `LSTD`.
    max_iterations : int
        The largest number of policies to evaluate.
    tolerance : float
        Stop when |theta - theta_before| is at most this multiple of |theta|, of which a constant
        part of the values is left out.
    initial_policy : callable, optional
        Maps a batch of observations to actions. By default the policy of `FQI` if the basis is
        chosen, and action 0 everywhere if it is given.

    Attributes
    ----------
    weights_ : ndarray, shape (k,)
        theta of the last policy that was evaluated. `act` is greedy in them.
    history_ : list of Iteration
        The weights of every policy that was evaluated.
    n_iter_ : int
        The number of policies that were evaluated.
    converged_ : bool
        Whether the policy is greedy in its own values, as far as the data can tell, or the
        weights changed by less than the tolerance.
    cycle_ : int
        The length of the cycle in which policy iteration ended; 0 if it did not. The policy that
        is kept has the highest mean value in the next states of the data, by its own evaluation.
    basis_, actions_ : Basis, int
        The basis and the number of actions that were used.
    selection_ : Selection or None
        How the basis was chosen; None if it was given. In a basis that was chosen, the policy that
        is kept is the one, of all that were found on the way, that is worth most by averages over
        cells of the observations, if there are enough data for narrow cells.
    statistics_, rank_, condition_, features_
        As for `LSTD`, of the last policy that was evaluated, or of the one that is kept.

    References
    ----------
    M. G. Lagoudakis and R. Parr (2003). Least-squares policy iteration. Journal of Machine
    Learning Research 4.
    """

    _bayesian = "BLSPI"

    basis: BasisLike | None = None  # type: ignore[assignment]
    actions: int | None = None
    _: KW_ONLY
    discount: float = 0.99
    max_iterations: int = 20
    tolerance: float = 1e-6
    initial_policy: PolicyFunction | None = None
    ridge: float = 1e-6
    observation_space: gym.Space[Any] | None = None
    columns: Columns | None = None
