"""One pass over a data set accumulates the sufficient statistics of a policy.

Data live in partitions, are read in chunks and computed with in batches: features exist for one
batch at a time, so the memory needed does not depend on the size of a chunk. The sums of chunks
and of partitions are merged in order, wherever they were computed; the results are therefore the
same to the last bit on a cluster and in one process.
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

from rblspi.core.types import Integers, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike, Features, as_basis
from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import Statistics, accumulate, empty
from rblspi.policies.given import BatchPolicy

Result = TypeVar("Result")

#: What estimators learn from: transitions, their columns, or an iterable of chunks that can be
#: iterated over any number of times.
Data: TypeAlias = Transitions | tuple[Any, ...] | Iterable[Transitions]

#: numbers in the features of a batch: 4 MB
BATCH = 2**19


@runtime_checkable
class Partitioned(Protocol):
    """Data in partitions, each of them an iterable of chunks."""

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterable[Result]:
        """Apply a function to every partition, here or on a cluster; the results are in order."""


class Problem(NamedTuple):
    """The definition of the values that are estimated."""

    features: Features
    space: gym.Space[Any]  # of the observations
    actions: int | None  # None: values of states
    discount: float

    @property
    def blocks(self) -> int:
        """The number of blocks of weights: one for each action, or one for the values of states."""
        return 1 if self.actions is None else self.actions


class PolicySums(NamedTuple):
    """The result of a pass over some transitions with one policy."""

    statistics: Statistics
    policy: bytes  # digest of its actions in the next states, 16 bytes for each chunk
    changed: int  # next states in which its action differs from that of the previous policy
    ahead: Vector  # sum of phi(s', pi(s')) over the next states that are not terminal, (k,)

    def merge(self, other: PolicySums) -> PolicySums:
        """The sums over these transitions followed by others."""
        return PolicySums(
            self.statistics.merge(other.statistics),
            self.policy + other.policy,
            self.changed + other.changed,
            self.ahead + other.ahead,
        )


def chunks_of(data: Data) -> Iterable[Transitions]:
    """The chunks of the data in any of the accepted forms, for any number of passes."""
    if isinstance(data, Transitions):
        return [data]
    if isinstance(data, tuple) and not any(isinstance(item, Transitions) for item in data):
        if len(data) not in (5, 6):
            raise ValueError(
                f"transitions has {len(data)} columns, but needs {', '.join(Transitions._fields)} "
                "(the last may be omitted)"
            )
        return [Transitions.from_arrays(*data)]
    if isinstance(data, Iterator):
        raise TypeError(
            "transitions is an iterator, which can be passed over only once: pass a list of "
            "chunks, or an object whose __iter__ starts from the beginning"
        )
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict | str):
        return cast(Iterable[Transitions], data)
    raise TypeError(
        f"transitions of type {type(data).__name__} must be Transitions, their columns, or "
        "an iterable of Transitions"
    )


def sums_of_policy(
    problem: Problem,
    policy: BatchPolicy,
    chunks: Iterable[Transitions],
    previous: BatchPolicy | None = None,
) -> PolicySums:
    """Make one pass over the data: the sums of a policy, and how it differs from the previous."""
    work = partial(_sums_of_partition, problem, policy, previous)
    return _not_empty(_merged(over_partitions(chunks, work), PolicySums.merge))


def over_partitions(
    chunks: Iterable[Transitions], work: Callable[[Iterable[Transitions]], Result]
) -> Iterable[Result]:
    """Apply a function to every partition; data without partitions count as a single one."""
    return chunks.map_partitions(work) if isinstance(chunks, Partitioned) else [work(chunks)]


def _merged(
    results: Iterable[Result | None], merge: Callable[[Result, Result], Result]
) -> Result | None:
    """Merge the results of chunks or partitions in order; None stands for an empty one."""
    present = (result for result in results if result is not None)
    first = next(present, None)
    return None if first is None else reduce(merge, present, first)


def _not_empty(result: Result | None) -> Result:
    if result is None:
        raise ValueError("transitions has no chunks: at least one transition is needed")
    return result


def _sums_of_partition(
    problem: Problem,
    policy: BatchPolicy,
    previous: BatchPolicy | None,
    chunks: Iterable[Transitions],
) -> PolicySums | None:
    """The sums over one partition; None if it is empty."""
    sums = (_sums_of_chunk(problem, policy, previous, _conformed(chunk)) for chunk in chunks)
    return _merged(sums, PolicySums.merge)


def _sums_of_chunk(
    problem: Problem, policy: BatchPolicy, previous: BatchPolicy | None, chunk: Transitions
) -> PolicySums:
    """The sums over one chunk.

    The values in the chunk are checked batch by batch, by the features and by `accumulate`. Only
    if that fails, all columns are checked to name the column and the row of the chunk.
    """
    try:
        with threadpool_limits(limits=1, user_api="blas"):  # small products do not need more
            return _sums_of_batches(problem, policy, previous, chunk)
    except (TypeError, ValueError):
        _require_valid(problem, chunk)
        raise


def _sums_of_batches(
    problem: Problem, policy: BatchPolicy, previous: BatchPolicy | None, chunk: Transitions
) -> PolicySums:
    features, discount = problem.features, problem.discount
    statistics = empty(problem.blocks, features.size)
    digest = blake2b(digest_size=16)
    changed = 0
    ahead = np.zeros((problem.blocks, features.size))
    for batch in chunk.batches(batch_rows(features)):
        x, y = features(batch.observations), features(batch.next_observations)
        actions = np.zeros(batch.size, np.int64) if problem.actions is None else batch.actions
        next_actions = _next_actions(problem, policy, batch, y)
        accumulate(statistics, x, actions, batch.rewards, y, next_actions, discount)
        digest.update(next_actions.tobytes())
        for action, total in enumerate(ahead):
            total += (next_actions == action) @ y
        if previous is None:
            changed += int((next_actions != TERMINAL).sum())
        else:
            before = _next_actions(problem, previous, batch, y)
            changed += int((next_actions != before).sum())
    return PolicySums(statistics, digest.digest(), changed, ahead.ravel())


def batch_rows(features: Features) -> int:
    """The number of rows in a batch."""
    return max(1, BATCH // features.size)


def _conformed(chunk: Transitions) -> Transitions:
    """A chunk whose columns have the right types and shapes."""
    if not isinstance(chunk, Transitions):
        raise TypeError(
            f"transitions has a chunk of type {type(chunk).__name__}, which must be Transitions"
        )
    return chunk.conformed()


def _require_valid(problem: Problem, chunk: Transitions) -> None:
    """Raise an error that names the first wrong value in a chunk, if there is one."""
    Transitions.from_arrays(*chunk)
    if problem.actions is None:
        return
    unknown = chunk.actions >= problem.actions
    if unknown.any():
        row = int(unknown.argmax())
        raise ValueError(
            f"actions in row {row} is {chunk.actions[row]}, but with actions={problem.actions} "
            f"they go from 0 to {problem.actions - 1}"
        )


def _next_actions(problem: Problem, policy: BatchPolicy, batch: Transitions, y: Matrix) -> Integers:
    """The actions of a policy in the next states, checked; TERMINAL where the state is terminal."""
    chosen = np.asarray(policy(batch.next_observations, y))
    if chosen.shape != (batch.size,):
        raise ValueError(
            f"policy gave actions of shape {chosen.shape} for {batch.size} observations: it must "
            "give one action for each"
        )
    if chosen.dtype.kind not in "biu":
        raise TypeError(f"policy gave actions of type {chosen.dtype}: they must be whole numbers")
    unknown = ((chosen < 0) | (chosen >= problem.blocks)) & ~batch.terminated
    if unknown.any():
        row = int(unknown.argmax())
        raise ValueError(
            f"policy gave action {chosen[row]} for the observation "
            f"{batch.next_observations[row].tolist()}: actions go from 0 to {problem.blocks - 1}"
        )
    return np.where(batch.terminated, TERMINAL, chosen).astype(np.int64, copy=False)


def build_features(
    basis: BasisLike, space: gym.Space[Any] | None, chunks: Iterable[Transitions], look: bool
) -> tuple[Features, gym.Space[Any]]:
    """Build the features for a given observation space, or for one that is found in the data.

    A basis that has its own bounds is built without a pass over the data. Any other basis needs
    the range of all observations, for which ``look`` allows a pass.
    """
    recipe = as_basis(basis)
    if space is not None:
        return recipe.build(space), space
    first = _conformed(_not_empty(next(iter(chunks), None)))
    if not _are_states(first.observations):
        try:
            unbounded = gym.spaces.Box(-np.inf, np.inf, first.observations.shape[1:], np.float64)
            return recipe.build(unbounded), unbounded
        except ValueError:  # the basis needs bounds
            pass
    if not look:
        raise ValueError(
            "observation_space=None, and partial_fit cannot tell the range of all observations "
            "from the first of them: give observation_space, or a basis with low and high"
        )
    observed = observed_space(chunks)
    return recipe.build(observed), observed


def observed_space(chunks: Iterable[Transitions]) -> gym.Space[Any]:
    """The smallest space of all observations: Discrete if they are whole numbers, else a Box."""
    low, high, states = _not_empty(_merged(over_partitions(chunks, _range), _Range.merge))
    if states:
        return gym.spaces.Discrete(int(high - low) + 1, start=int(low))
    return gym.spaces.Box(low, high, np.shape(low), np.float64)


class _Range(NamedTuple):
    low: NDArray[Any]
    high: NDArray[Any]
    states: bool  # whether every observation is a whole number

    def merge(self, other: _Range) -> _Range:
        return _Range(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.states and other.states,
        )


def _range(chunks: Iterable[Transitions]) -> _Range | None:
    """The range of all observations in one partition; None if it is empty."""
    return _merged((_range_of_chunk(_conformed(chunk)) for chunk in chunks), _Range.merge)


def _range_of_chunk(chunk: Transitions) -> _Range:
    one, other = (
        _Range(column.min(axis=0), column.max(axis=0), _are_states(column))
        for column in (chunk.observations, chunk.next_observations)
    )
    found = one.merge(other)
    if not (np.isfinite(found.low).all() and np.isfinite(found.high).all()):
        Transitions.from_arrays(*chunk)  # names the row that is not finite
    return found


def _are_states(observations: NDArray[Any]) -> bool:
    """Whether the observations are whole numbers: the states of a Discrete space."""
    return observations.ndim == 1 and observations.dtype.kind in "iu"
