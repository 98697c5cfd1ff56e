"""What policy iteration and fitted Q iteration tell about their progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from rblspi.core.types import Vector


class ConvergenceWarning(UserWarning):
    """Policy iteration ended before it converged."""


class Iteration(NamedTuple):
    """The evaluation of one policy.

    The first policy is the initial one. A mixture consists of several earlier policies. Any other
    policy is greedy in the weights of the preceding iteration.

    ``policy`` is a digest of the policy's actions in the next states of the data; for a mixture,
    "mixture" and the digest of the policy that closed the cycle. ``changed`` counts the next
    states in which its action differs from that of the preceding policy. For the first policy,
    it counts the next states that are not terminal; for a mixture, it is 0.
    """

    weights: Vector  # of the policy's action values, (k,)
    policy: str
    changed: int
    change: float  # of the weights, relative to their length; infinite for the first policy
    mixed: int = 1  # the number of policies in a mixture


#: Called with every iteration as soon as it is done.
OnIteration: TypeAlias = Callable[[Iteration], object]
