"""Approximate policy iteration on a fixed set of transitions.

Least squares see a policy only through its actions in the next states of the data. If all of
these are as in the iteration before, it has converged; as in an earlier one, it runs in a circle.

It then leaves the circle by a mixture: the policy that in every next state does what one of the
policies of the circle does, each of them with the same probability. The sums of a mixture are the
mean of the sums, so it is evaluated like any other policy, and iteration goes on with the policy
that is greedy in its values. If the circle is closed a second time, the policy on it is kept whose
own evaluation promises the highest mean value in the next states of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rblspi.estimators.passes import Evaluation, Problem, evaluate
from rblspi.estimators.rules import Rule
from rblspi.statistics import Statistics, empty
from rblspi.transitions import Transitions

Vector = NDArray[np.float64]


class Iteration(NamedTuple):
    """One evaluation of a policy.

    The policy of the first iteration is the initial one, that of a mixture is made of several
    before it, and that of any other one is greedy in the weights of the iteration before it.

    Attributes
    ----------
    weights : ndarray, shape (k,)
        Of the policy's action values.
    policy : str
        Digest of the policy's actions in the next states of the data; of a mixture, "mixture"
        and the digest of the policy that closed the circle.
    changed : int
        Next states in which it acts differently from the policy before it; at first, all of
        those that are not terminal. 0 for a mixture.
    change : float
        |theta - theta_before| / |theta|; infinite at first.
    mixed : int
        Policies in it: 1 unless it is a mixture.
    """

    weights: Vector
    policy: str
    changed: int
    change: float
    mixed: int = 1


class Outcome(NamedTuple):
    """How policy iteration ended."""

    statistics: Statistics  # whose weights the policy that was found is greedy in
    history: list[Iteration]
    converged: bool
    cycle: int  # policies that follow one another for ever; 0 if that is not so


class Improvement(NamedTuple):
    """What the sums of a policy lead to."""

    weights: Vector  # of its action values, (k,)
    rule: Rule  # the policy that is better by these values


class Visit(NamedTuple):
    """A policy on the way."""

    rule: Rule
    digest: bytes
    value: float  # by its own evaluation, in the next states of the data


def iterate(
    chunks: Iterable[Transitions],
    problem: Problem,
    improve: Callable[[Statistics], Improvement],
    rule: Rule,
    max_iterations: int,
    tolerance: float,
    tell: Callable[[Iteration], object] | None = None,
) -> Outcome:
    """Evaluate, improve, repeat.

    Parameters
    ----------
    chunks : iterable of Transitions
        Gone through at every iteration.
    problem : Problem
    improve : callable
        From the sums of a policy to the weights of its action values and a better policy.
    rule : callable
        The initial policy.
    max_iterations : int
    tolerance : float
        Converged as well if the weights change by less, relative to their length.
    tell : callable, optional
        Called with every `Iteration` as soon as it is done.
    """
    history: list[Iteration] = []
    path: list[Visit] = []  # since the last mixture
    known: set[bytes] = set()  # policies before it
    previous: Rule | None = None
    statistics = empty(problem.blocks, problem.features.size)
    for _ in range(max_iterations):
        evaluation = evaluate(problem, rule, chunks, previous)
        circle = _circle(path, evaluation.policy)
        if len(circle) == 1:
            return Outcome(statistics, history, True, 0)
        if circle and known.issuperset(visit.digest for visit in circle):
            best = _before_the_best(circle)
            statistics = evaluate(problem, best, chunks).statistics
            return Outcome(statistics, history, False, len(circle))

        sums = [evaluate(problem, visit.rule, chunks).statistics for visit in circle]
        statistics = _mean(sums) if circle else evaluation.statistics
        weights, better = improve(statistics)
        history.append(_iteration(history, weights, evaluation, len(circle)))
        if tell is not None:
            tell(history[-1])
        if circle:
            known.update(visit.digest for visit in path)
            path = []
        else:
            path.append(Visit(rule, evaluation.policy, float(evaluation.ahead @ weights)))
            if history[-1].change <= tolerance:
                return Outcome(statistics, history, True, 0)
        previous, rule = rule, better
    return Outcome(statistics, history, False, 0)


def _circle(path: list[Visit], digest: bytes) -> list[Visit]:
    """The policies from this one on to the last, if it was visited before; else none."""
    digests = [visit.digest for visit in path]
    return path[digests.index(digest) :] if digest in digests else []


def _before_the_best(circle: list[Visit]) -> Rule:
    """The policy whose improvement is the best of the circle by its own evaluation."""
    best = max(range(len(circle)), key=lambda i: circle[i].value)
    return circle[best - 1].rule


def _mean(parts: list[Statistics]) -> Statistics:
    """The sums of a mixture."""
    total = reduce(Statistics.merge, parts)
    return Statistics(total.gram / len(parts), total.cross / len(parts), total.count // len(parts))


def _iteration(
    history: list[Iteration], weights: Vector, evaluation: Evaluation, circle: int
) -> Iteration:
    digest = evaluation.policy.hex()
    change = _relative_change(history[-1].weights, weights) if history else math.inf
    if circle:
        return Iteration(weights, f"mixture {digest}", 0, change, circle)
    return Iteration(weights, digest, evaluation.changed, change)


def _relative_change(before: Vector, after: Vector) -> float:
    length = float(np.linalg.norm(after))
    distance = float(np.linalg.norm(after - before))
    return distance / length if length > 0.0 else distance
