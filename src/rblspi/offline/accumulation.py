"""One pass over a data set accumulates the sufficient statistics of a policy.

Data live in partitions, are read in chunks and computed with in batches: features exist for one
batch at a time, so the memory needed does not depend on the size of a chunk. The sums of chunks
and of partitions are merged in order, wherever they were computed; the results are therefore the
same to the last bit on a cluster and in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial, reduce
from hashlib import blake2b
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from rblspi.core.types import Integers, Matrix, Vector
from rblspi.data.columns import Columns
from rblspi.data.encoding import Naming
from rblspi.data.log import is_log, read_log
from rblspi.data.transitions import Transitions
from rblspi.features import Features
from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import Statistics, TDErrorSums, accumulate, empty
from rblspi.policies.given import BatchPolicy

Result = TypeVar("Result")

#: What estimators learn from: transitions, their columns, an iterable of chunks that can be
#: iterated over any number of times, or a log that `rblspi.data.read_log` reads.
Data: TypeAlias = Transitions | tuple[Any, ...] | Iterable[Transitions] | str | PathLike[str]

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

    @property
    def constant(self) -> Vector | None:
        """The weights of the value function that is 1 everywhere, shape (k,), if there are any."""
        weights = self.features.constant
        return None if weights is None else np.tile(weights, self.blocks)


class PolicySums(NamedTuple):
    """The result of a pass over some transitions with one policy."""

    statistics: Statistics
    td_errors: TDErrorSums
    policy: bytes  # digest of its actions in the next states, 16 bytes for each chunk
    changed: int  # next states in which its action differs from that of the previous policy
    ahead: Vector  # sum of phi(s', pi(s')) over the next states that are not terminal, (k,)

    def merge(self, other: PolicySums) -> PolicySums:
        """The sums over these transitions followed by others."""
        return PolicySums(
            self.statistics.merge(other.statistics),
            self.td_errors.merge(other.td_errors),
            self.policy + other.policy,
            self.changed + other.changed,
            self.ahead + other.ahead,
        )

    @staticmethod
    def mixture(mixed: Sequence[PolicySums]) -> PolicySums:
        """The sums of the policy that follows each of these with the same probability."""
        total, share = reduce(PolicySums.merge, mixed), 1.0 / len(mixed)
        gram, cross, count = total.statistics
        return PolicySums(
            Statistics(gram * share, cross * share, count // len(mixed)),
            TDErrorSums(*(part * share for part in total.td_errors)),
            total.policy,
            total.changed,
            total.ahead * share,
        )


def chunks_of(
    data: Data, columns: Columns | None = None, names: Naming | None = None
) -> Iterable[Transitions]:
    """The chunks of the data in any of the accepted forms, for any number of passes.

    The columns and the names of a log are those of `rblspi.data.read_log`.
    """
    if isinstance(data, Transitions | tuple) and columns is not None:
        _require_elapsed(data, columns)
    if isinstance(data, Transitions):
        return [data]
    if isinstance(data, tuple) and not any(isinstance(item, Transitions) for item in data):
        if len(data) not in (5, 6):
            needed = [field.name for field in fields(Transitions)][:6]
            raise ValueError(
                f"transitions has {len(data)} columns, but needs {', '.join(needed)} (the last may "
                "be omitted)"
            )
        return [Transitions.from_arrays(*data)]
    if is_log(data):
        return read_log(data, columns, names=names)
    if isinstance(data, Iterator):
        raise TypeError(
            "transitions is an iterator, which can be passed over only once: pass a list of "
            "chunks, or an object whose __iter__ starts from the beginning"
        )
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict):
        return cast(Iterable[Transitions], data)
    raise TypeError(
        f"transitions of type {type(data).__name__} must be Transitions, their columns, or "
        "an iterable of Transitions"
    )


def _require_elapsed(data: Transitions | tuple[Any, ...], columns: Columns) -> None:
    """Raise an error if nothing tells how long transitions in arrays took, and it matters."""
    timed = isinstance(data, Transitions) and data.elapsed is not None
    if columns.discount_per is not None and not timed:
        raise ValueError(
            f"discount_per={columns.discount_per}: arrays of transitions say how long these took, "
            "in units of that time, as Transitions(..., elapsed=)"
        )


def sums_of_policy(
    problem: Problem,
    policy: BatchPolicy,
    chunks: Iterable[Transitions],
    previous: BatchPolicy | None = None,
) -> PolicySums:
    """Make one pass over the data: the sums of a policy, and how it differs from the previous."""
    work = partial(_sums_of_chunk, problem, policy, previous)
    with np.errstate(over="ignore", invalid="ignore"):  # for `require_finite` to report
        return over_chunks(chunks, work, PolicySums.merge)


def over_chunks(
    chunks: Iterable[Transitions],
    work: Callable[[Transitions], Result],
    merge: Callable[[Result, Result], Result],
) -> Result:
    """Apply a function to every chunk, here or on a cluster, and merge the results in order."""

    def over_partition(partition: Iterable[Transitions]) -> Result | None:
        return _merged((work(conformed(chunk)) for chunk in partition), merge)

    if isinstance(chunks, Partitioned):
        result = _merged(chunks.map_partitions(over_partition), merge)
    else:
        result = over_partition(chunks)
    return not_empty(result, chunks)


def _merged(
    results: Iterable[Result | None], merge: Callable[[Result, Result], Result]
) -> Result | None:
    """Merge the results of chunks or partitions in order; None stands for an empty one."""
    present = (result for result in results if result is not None)
    first = next(present, None)
    return None if first is None else reduce(merge, present, first)


def not_empty(result: Result | None, chunks: Iterable[Transitions]) -> Result:
    """The result, unless there were no chunks; then the data may know of bad rows."""
    if result is None:
        bad = getattr(chunks, "bad", None)
        reason = f"; {bad}" if bad is not None and bad.count else ""
        raise ValueError(f"transitions has no chunks: at least one transition is needed{reason}")
    return result


def _sums_of_chunk(
    problem: Problem, policy: BatchPolicy, previous: BatchPolicy | None, chunk: Transitions
) -> PolicySums:
    features = problem.features
    statistics = empty(problem.blocks, features.size)
    td_errors = TDErrorSums.empty(problem.blocks, features.size)
    digest, changed = blake2b(digest_size=16), 0
    ahead = np.zeros((problem.blocks, features.size))
    # Products of small matrices do not need more than one thread.
    with _wrong_values_named(problem, chunk), threadpool_limits(limits=1, user_api="blas"):
        for batch in chunk.batches(batch_rows(features)):
            x, y = features(batch.observations), features(batch.next_observations)
            actions = np.zeros(batch.size, np.int64) if problem.actions is None else batch.actions
            next_actions = _next_actions(problem, policy, batch, y)
            discount = batch.discounts(problem.discount)
            accumulate(statistics, x, actions, batch.rewards, y, next_actions, discount)
            td_errors.add(y, next_actions, batch.rewards, discount)
            digest.update(next_actions.tobytes())
            for action, total in enumerate(ahead):
                total += (next_actions == action) @ y
            before = TERMINAL if previous is None else _next_actions(problem, previous, batch, y)
            changed += int((next_actions != before).sum())
    return PolicySums(statistics, td_errors, digest.digest(), changed, ahead.ravel())


@contextmanager
def _wrong_values_named(problem: Problem, chunk: Transitions) -> Iterator[None]:
    """If something is wrong with a batch, check the chunk to name the column and the row in it.

    The values in a batch are checked anyway, by the features and by `accumulate`.
    """
    try:
        yield
    except (TypeError, ValueError):
        chunk.checked()
        if problem.actions is not None and (chunk.actions >= problem.actions).any():
            row = int(np.argmax(chunk.actions >= problem.actions))
            raise ValueError(
                f"actions in row {row} is {chunk.actions[row]}, but with actions={problem.actions} "
                f"they go from 0 to {problem.actions - 1}"
            ) from None
        raise


def require_finite(*results: ArrayLike) -> None:
    """Raise an error if sums over transitions, or what follows from them, have overflowed."""
    if not all(np.isfinite(result).all() for result in results):
        raise ValueError(
            "the sums over the transitions overflow: rescale the rewards, for example by dividing "
            "them by the largest, or make the features smaller"
        )


def batch_rows(features: Features) -> int:
    """The number of rows in a batch."""
    return max(1, BATCH // features.size)


def conformed(chunk: Transitions) -> Transitions:
    """A chunk whose columns have the right types and shapes."""
    if not isinstance(chunk, Transitions):
        raise TypeError(
            f"transitions has a chunk of type {type(chunk).__name__}, which must be Transitions"
        )
    return chunk.conformed()


def _next_actions(problem: Problem, policy: BatchPolicy, batch: Transitions, y: Matrix) -> Integers:
    """The actions of a policy in the next states, checked; TERMINAL where the state is terminal."""
    allowed = batch.next_allowed
    masks = () if allowed is None else (allowed,)
    chosen = np.asarray(policy(batch.next_observations, y, *masks))
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
    _require_allowed(problem, batch, chosen)
    return np.where(batch.terminated, TERMINAL, chosen).astype(np.int64, copy=False)


def _require_allowed(problem: Problem, batch: Transitions, chosen: Integers) -> None:
    """Raise an error if a policy takes an action that is not allowed."""
    allowed = batch.next_allowed
    if allowed is None or problem.actions is None:
        return
    rows = np.flatnonzero(~batch.terminated)
    forbidden = rows[~allowed[rows, chosen[rows]]]
    if len(forbidden):
        row = int(forbidden[0])
        raise ValueError(
            f"policy gave action {chosen[row]} for the observation "
            f"{batch.next_observations[row].tolist()}, where next_allowed forbids it"
        )
