"""Approximate policy iteration on a fixed set of transitions.

Least squares depends on a policy only through its actions in the next states of the data. If these
actions equal those of the preceding policy, policy iteration has converged; if they equal those of
an earlier one, it is in a cycle.

A cycle is left by a mixture: the policy that, in every next state, follows each policy of the
cycle with the same probability. Its sums are the mean of their sums, so it is evaluated like any
other policy, and iteration continues with the policy that is greedy in its values. If the same
cycle occurs a second time, the policy is kept that has the highest mean value in the next states
of the data, by its own evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from rblspi.core.types import Vector
from rblspi.offline.accumulation import require_finite
from rblspi.offline.problem import PolicySums
from rblspi.policies.given import BatchPolicy

#: The sums of a policy, compared with the one before it if there is one.
Evaluate: TypeAlias = Callable[[BatchPolicy, BatchPolicy | None], PolicySums]
#: The weights of a policy's action values, (k,), and the better policy that follows from them.
Improvement: TypeAlias = tuple[Vector, BatchPolicy]


class ConvergenceWarning(UserWarning):
    """Policy iteration ended before it converged."""


class Iteration(NamedTuple):
    """The evaluation of one policy.

    The first policy is the initial one. A mixture consists of several earlier policies. Any other
    policy is greedy in the weights of the preceding iteration.
    """

    weights: Vector  # of the policy's action values, (k,)
    changed: int  # next states in which its action is not that of the preceding policy
    change: float  # of the weights, relative to their length; infinite for the first policy
    mixed: int = 1  # the number of policies in a mixture


#: Called with every iteration as soon as it is done.
OnIteration: TypeAlias = Callable[[Iteration], object]


class Result(NamedTuple):
    """The outcome of policy iteration."""

    sums: PolicySums  # the policy that was found is greedy in the weights they give
    history: list[Iteration]
    converged: bool
    cycle: int  # the number of policies in the final cycle; 0 if there is none


class Visit(NamedTuple):
    """A policy that was evaluated."""

    policy: BatchPolicy
    digest: bytes
    value: float  # its sum of values over the next states, by its own evaluation


def iterate(
    evaluate: Evaluate,
    improve: Callable[[PolicySums], Improvement],
    policy: BatchPolicy,
    constant: Vector | None,
    max_iterations: int,
    tolerance: float,
    tell: OnIteration | None = None,
) -> Result:
    """Evaluate, improve, repeat, starting with a policy and passing over the data each time.

    Iteration has also converged if the relative change of the weights, without their part along the
    constant, is at most ``tolerance``. Every `Iteration` is passed to ``tell`` when it is done.
    """
    history: list[Iteration] = []
    path: list[Visit] = []  # the policies since the last mixture
    known: set[bytes] = set()  # the digests of those before it
    previous: BatchPolicy | None = None
    evaluated: PolicySums | None = None  # the sums behind the latest weights
    for _ in range(max_iterations):
        sums = evaluate(policy, previous)
        digests = [visit.digest for visit in path]
        cycle = path[digests.index(sums.policy) :] if sums.policy in digests else []
        if len(cycle) == 1 and evaluated is not None:
            return Result(evaluated, history, True, 0)
        if cycle and known.issuperset(visit.digest for visit in cycle):
            # The best policy is greedy in the values of the one before it.
            best = max(range(len(cycle)), key=lambda i: cycle[i].value)
            return Result(evaluate(cycle[best - 1].policy, None), history, False, len(cycle))

        evaluated = sums
        if cycle:
            evaluated = PolicySums.mixture([evaluate(visit.policy, None) for visit in cycle])
        weights, better = improve(evaluated)
        change = _relative_change(history[-1].weights, weights, constant) if history else math.inf
        changed = 0 if cycle else sums.changed
        history.append(Iteration(weights, changed, change, max(1, len(cycle))))
        if tell is not None:
            tell(history[-1])
        if cycle:
            known.update(visit.digest for visit in path)
            path = []
        else:
            path.append(Visit(policy, sums.policy, float(sums.ahead @ weights)))
            if change <= tolerance:
                return Result(evaluated, history, True, 0)
        previous, policy = policy, better
    assert evaluated is not None
    return Result(evaluated, history, False, 0)


def _relative_change(before: Vector, after: Vector, constant: Vector | None) -> float:
    """|theta - theta_before|, relative to the length of theta without its constant part.

    How large values are in all says nothing about how much they differ, which is what policies
    depend on.
    """
    shape = after
    if constant is not None:
        shape = after - constant * (constant @ after / (constant @ constant))
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(shape))
        distance = float(np.linalg.norm(after - before))
    require_finite(length, distance)
    return distance / length if length > 0.0 else distance
