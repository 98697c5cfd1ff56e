"""Policies that a user gives: a function of the observations, or a list of actions.

Like the classes in `choice` they are called with a batch of observations and their features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Allowed, Integers, Matrix

#: What a user calls a policy: from a batch of observations to actions, counted from 0.
PolicyFunction: TypeAlias = Callable[[NDArray[Any]], ArrayLike]

#: What an evaluation calls: from observations and their features, shape (N, n), to actions.
#: Where masks are known, they come third: which actions are allowed, shape (N, actions).
BatchPolicy: TypeAlias = Callable[..., ArrayLike]


def first_action(observations: NDArray[Any], x: Matrix, allowed: Allowed | None = None) -> Integers:
    """The first allowed action; where states are valued, it is the only block of weights."""
    if allowed is None:
        return np.zeros(len(x), np.int64)
    first: Integers = np.argmax(allowed, axis=1)
    return first


@dataclass(frozen=True)
class FunctionPolicy:
    """A function of the user's own."""

    function: PolicyFunction

    def __call__(
        self, observations: NDArray[Any], x: Matrix, allowed: Allowed | None = None
    ) -> ArrayLike:
        """What the function says of the observations, and of masks if it knows what they are."""
        if allowed is not None and hasattr(self.function, "allowed_actions"):
            return np.asarray(self.function.allowed_actions(observations, allowed))
        return self.function(observations)


class ListedActions:
    """Actions listed in advance, in the order of the transitions; good for one pass."""

    def __init__(self, actions: ArrayLike) -> None:
        self._remaining = np.asarray(actions)
        if self._remaining.ndim != 1:
            raise ValueError(
                f"policy of shape {self._remaining.shape} must be a function of the observations "
                "or list one next action for every transition"
            )

    def __call__(
        self, observations: NDArray[Any], x: Matrix, allowed: Allowed | None = None
    ) -> NDArray[Any]:
        """The next actions of the list."""
        if len(self._remaining) < len(x):
            raise ValueError("policy lists fewer next actions than there are transitions")
        here, self._remaining = self._remaining[: len(x)], self._remaining[len(x) :]
        return here

    def require_exhausted(self) -> None:
        """Raise if the list was longer than the data."""
        if len(self._remaining):
            raise ValueError(
                f"policy lists {len(self._remaining)} next actions more than there are transitions"
            )
