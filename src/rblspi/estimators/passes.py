"""One pass over logged transitions: from any number of chunks to one set of sums.

A chunk is evaluated on its own, wherever it is, and the results merge by adding. Features are
made for a few rows at a time and forgotten: memory is bounded, whatever the size of a chunk.

Data in parts merge part by part, in order, whether the parts are gone through here or elsewhere:
the numbers are then the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rblspi.estimators.rules import Rule
from rblspi.features import BasisLike, Features, as_basis
from rblspi.statistics import TERMINAL, Statistics, accumulate, empty
from rblspi.transitions import Transitions

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]
Result = TypeVar("Result")

#: What estimators learn from: transitions, their five columns, or chunks of transitions that
#: can be iterated over again and again.
Data: TypeAlias = Transitions | tuple[Any, Any, Any, Any, Any] | Iterable[Transitions]

#: numbers in the features of the rows that are worked on at a time: 4 MB
PIECE = 2**19


@runtime_checkable
class Parts(Protocol):
    """Data that come in parts, each of them an iterable of chunks."""

    def map_parts(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterable[Result]:
        """What the work makes of every part, in order; where it is done is the data's affair."""


def over_parts(
    chunks: Iterable[Transitions], work: Callable[[Iterable[Transitions]], Result]
) -> Iterable[Result]:
    """What the work makes of every part of the data, which are one part unless they have some."""
    return chunks.map_parts(work) if isinstance(chunks, Parts) else [work(chunks)]


class Problem(NamedTuple):
    """What is estimated, as far as the sums are concerned."""

    features: Features
    actions: int | None  # None: values of states
    discount: float

    @property
    def blocks(self) -> int:
        """Blocks of weights: one for every action, or one for all."""
        return 1 if self.actions is None else self.actions


class Evaluation(NamedTuple):
    """What a pass over some transitions tells of a policy."""

    statistics: Statistics
    policy: bytes  # digest of its actions in the next states, 16 bytes a chunk
    changed: int  # next states in which it acts differently from the policy before it
    ahead: Vector  # sum of phi(s', pi(s')) over the next states that are not terminal, (k,)

    def merge(self, other: Evaluation) -> Evaluation:
        """What both passes tell, those chunks first that come first."""
        return Evaluation(
            self.statistics.merge(other.statistics),
            self.policy + other.policy,
            self.changed + other.changed,
            self.ahead + other.ahead,
        )


def chunks_of(data: Data) -> Iterable[Transitions]:
    """Chunks of transitions, whatever the user passes; to be iterated over at every pass."""
    if isinstance(data, Transitions):
        return [data]
    if isinstance(data, tuple) and not any(isinstance(part, Transitions) for part in data):
        if len(data) != len(Transitions._fields):
            raise ValueError(
                f"transitions has {len(data)} columns, but needs {len(Transitions._fields)}: "
                f"{', '.join(Transitions._fields)}"
            )
        return [Transitions.from_arrays(*data)]
    if isinstance(data, Iterator):
        raise TypeError(
            "transitions is an iterator, which can be passed over only once: give a list of "
            "chunks, or an object whose __iter__ starts anew"
        )
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict | str):
        return cast(Iterable[Transitions], data)
    raise TypeError(
        f"transitions of type {type(data).__name__} must be Transitions, their five columns, or "
        "an iterable of Transitions"
    )


def evaluate(
    problem: Problem, rule: Rule, chunks: Iterable[Transitions], previous: Rule | None = None
) -> Evaluation:
    """The sums of a policy over all chunks, and how it differs from the policy before it."""
    work = partial(_evaluate_part, problem, rule, previous)
    evaluations = (found for found in over_parts(chunks, work) if found is not None)
    first = next(evaluations, None)
    if first is None:
        raise ValueError("transitions has no chunks: at least one transition is needed")
    return reduce(Evaluation.merge, evaluations, first)


def _evaluate_part(
    problem: Problem, rule: Rule, previous: Rule | None, chunks: Iterable[Transitions]
) -> Evaluation | None:
    """The sums over one part of the data; None if it is empty."""
    evaluations = (evaluate_chunk(problem, rule, chunk, previous) for chunk in chunks)
    first = next(evaluations, None)
    return None if first is None else reduce(Evaluation.merge, evaluations, first)


def evaluate_chunk(
    problem: Problem, rule: Rule, chunk: Transitions, previous: Rule | None = None
) -> Evaluation:
    """The sums of a policy over the transitions of one chunk."""
    chunk = _checked(problem, chunk)
    features = problem.features
    statistics = empty(problem.blocks, features.size)
    digest = blake2b(digest_size=16)
    changed = 0
    ahead = np.zeros((problem.blocks, features.size))
    with threadpool_limits(limits=1, user_api="blas"):  # the products are too small for more
        for piece in chunk.pieces(rows_at_a_time(features)):
            x, y = features(piece.observations), features(piece.next_observations)
            next_actions = _next_actions(problem, rule, piece, y)
            accumulate(
                statistics, x, piece.actions, piece.rewards, y, next_actions, problem.discount
            )
            digest.update(next_actions.tobytes())
            for action, total in enumerate(ahead):
                total += (next_actions == action) @ y
            if previous is None:
                changed += int((next_actions != TERMINAL).sum())
            else:
                before = _next_actions(problem, previous, piece, y)
                changed += int((next_actions != before).sum())
    return Evaluation(statistics, digest.digest(), changed, ahead.ravel())


def rows_at_a_time(features: Features) -> int:
    """How many rows to make features for at a time."""
    return max(1, PIECE // features.size)


def _checked(problem: Problem, chunk: Transitions) -> Transitions:
    """Transitions without faults whose actions are blocks of weights."""
    if not isinstance(chunk, Transitions):
        raise TypeError(
            f"transitions has a chunk of type {type(chunk).__name__}, which must be Transitions"
        )
    chunk = Transitions.from_arrays(*chunk)
    if problem.actions is None:
        return chunk._replace(actions=np.zeros(chunk.size, np.int64))
    unknown = chunk.actions >= problem.actions
    if unknown.any():
        row = int(unknown.argmax())
        raise ValueError(
            f"actions in row {row} is {chunk.actions[row]}, but with actions={problem.actions} "
            f"they go from 0 to {problem.actions - 1}"
        )
    return chunk


def _next_actions(problem: Problem, rule: Rule, piece: Transitions, y: Matrix) -> Integers:
    """What the rule says, checked; TERMINAL where there is no next action."""
    chosen = np.asarray(rule(piece.next_observations, y))
    if chosen.shape != (piece.size,):
        raise ValueError(
            f"policy gave actions of shape {chosen.shape} for {piece.size} observations: it must "
            "give one action for each"
        )
    if chosen.dtype.kind not in "biu":
        raise TypeError(f"policy gave actions of type {chosen.dtype}: they must be whole numbers")
    unknown = ((chosen < 0) | (chosen >= problem.blocks)) & ~piece.terminated
    if unknown.any():
        row = int(unknown.argmax())
        raise ValueError(
            f"policy gave action {chosen[row]} for the observation "
            f"{piece.next_observations[row].tolist()}: actions go from 0 to {problem.blocks - 1}"
        )
    return np.where(piece.terminated, TERMINAL, chosen).astype(np.int64, copy=False)


def build_features(
    basis: BasisLike, space: gym.Space[Any] | None, chunks: Iterable[Transitions], look: bool
) -> Features:
    """Features for the observations of a space, or of the data if no space is given.

    A basis with bounds of its own is built without looking at the data. Any other one gets the
    range of all observations, if ``look`` allows it.
    """
    recipe = as_basis(basis)
    if space is not None:
        return recipe.build(space)
    first = next(iter(chunks), None)
    if first is None:
        raise ValueError("transitions has no chunks: at least one transition is needed")
    if not _are_states(first.observations):
        shape = np.shape(first.observations)[1:]
        try:
            return recipe.build(gym.spaces.Box(-np.inf, np.inf, shape, np.float64))
        except ValueError:  # the basis needs bounds
            pass
    if not look:
        raise ValueError(
            "observation_space=None, and partial_fit cannot tell the range of all observations "
            "from the first of them: give observation_space, or a basis with low and high"
        )
    return recipe.build(observed_space(chunks))


def observed_space(chunks: Iterable[Transitions]) -> gym.Space[Any]:
    """The smallest space of the observations: Discrete if they are whole numbers, else a Box."""
    ranges = [found for found in over_parts(chunks, _range) if found is not None]
    if not ranges:
        raise ValueError("transitions has no chunks: at least one transition is needed")
    low, high, states = reduce(_Range.merge, ranges)
    if states:
        return gym.spaces.Discrete(int(high - low) + 1, start=int(low))
    return gym.spaces.Box(low, high, np.shape(low), np.float64)


class _Range(NamedTuple):
    low: NDArray[Any]
    high: NDArray[Any]
    states: bool  # whether all observations are bare whole numbers

    def merge(self, other: _Range) -> _Range:
        return _Range(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.states and other.states,
        )


def _range(chunks: Iterable[Transitions]) -> _Range | None:
    """The range of all observations in one part of the data; None if it is empty."""
    checked = (Transitions.from_arrays(*chunk) for chunk in chunks)
    ranges = [
        _Range(column.min(axis=0), column.max(axis=0), _are_states(column))
        for chunk in checked
        for column in (chunk.observations, chunk.next_observations)
    ]
    return reduce(_Range.merge, ranges) if ranges else None


def _are_states(observations: NDArray[Any]) -> bool:
    """Whether observations are bare whole numbers, the states of a Discrete space."""
    array = np.asarray(observations)
    return array.ndim == 1 and array.dtype.kind in "iu"
