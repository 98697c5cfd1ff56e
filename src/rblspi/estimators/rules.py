"""What the policy under evaluation does next: rules from next states to next actions.

A rule is called as ``rule(observations, y)`` with a batch of next observations and their
features, shape (N, n), and returns the actions, shape (N,). Rules are plain data, so that they
travel to where the transitions are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.posterior import Posterior

Matrix = NDArray[np.float64]

#: From a batch of observations to actions: what a user calls a policy.
Policy = Callable[[NDArray[Any]], ArrayLike]
Rule = Callable[[NDArray[Any], Matrix], ArrayLike]


def first_action(observations: NDArray[Any], y: Matrix) -> NDArray[np.int64]:
    """Action 0 everywhere: also the only block there is where states are valued."""
    return np.zeros(len(y), np.int64)


@dataclass(frozen=True)
class Greedy:
    """argmax_a y'theta_a; ties go to the first action."""

    weights: Matrix  # theta by action (actions, n)

    def __call__(self, observations: NDArray[Any], y: Matrix) -> NDArray[np.int64]:
        """The actions of the greatest value."""
        best: NDArray[np.int64] = np.argmax(y @ self.weights.T, axis=1)
        return best


@dataclass(frozen=True)
class Pessimistic:
    """argmax_a of the mean of Q minus c standard deviations; ties go to the first action."""

    posterior: Posterior
    pessimism: float  # c

    def __call__(self, observations: NDArray[Any], y: Matrix) -> NDArray[np.int64]:
        """The actions that are still good if things are worse than expected."""
        mean, std = self.posterior.predict(y)
        best: NDArray[np.int64] = np.argmax(mean - self.pessimism * std, axis=1)
        return best


@dataclass(frozen=True)
class Chosen:
    """The actions that a policy of the user's own chooses."""

    policy: Policy

    def __call__(self, observations: NDArray[Any], y: Matrix) -> ArrayLike:
        """What the policy says of the observations."""
        return self.policy(observations)


class Listed:
    """Actions written down beforehand, in the order of the transitions; good for one pass."""

    def __init__(self, actions: ArrayLike) -> None:
        self._left = np.asarray(actions)
        if self._left.ndim != 1:
            raise ValueError(
                f"policy of shape {self._left.shape} must be a function of the observations or "
                "list one next action for every transition"
            )

    def __call__(self, observations: NDArray[Any], y: Matrix) -> NDArray[Any]:
        """The next actions on the list."""
        if len(self._left) < len(y):
            raise ValueError("policy lists fewer next actions than there are transitions")
        here, self._left = self._left[: len(y)], self._left[len(y) :]
        return here

    def require_used_up(self) -> None:
        """Raise if there were more actions on the list than transitions."""
        if len(self._left):
            raise ValueError(
                f"policy lists {len(self._left)} next actions more than there are transitions"
            )
