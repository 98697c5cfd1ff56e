"""Which values are estimated, and the sums of a policy that estimates need.

A `Problem` holds the features, built for the observation space or for the range of the data, the
number of actions and the discount. `sums_of_policy` passes over the data with one policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from hashlib import blake2b
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import check
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike, Features, as_basis
from rblspi.features.base import MOST_FEATURES
from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import Statistics, TDErrorSums, accumulate, empty
from rblspi.model.traces import Continuation, Rows, accumulate_traces
from rblspi.offline.accumulation import batch_rows, first_chunks, one_thread, over_chunks
from rblspi.policies.choice import Greedy
from rblspi.policies.given import BatchPolicy, PolicyFunction


class Problem(NamedTuple):
    """The definition of the values that are estimated."""

    features: Features
    space: gym.Space[Any]  # of the observations
    actions: int | None  # None: values of states
    discount: float

    @classmethod
    def of(
        cls,
        basis: BasisLike,
        actions: int | None,
        discount: float,
        space: gym.Space[Any] | None,
        chunks: Iterable[Transitions],
        look: bool = True,
    ) -> Problem:
        """Check the arguments, and build the basis for a space or for the range of the data.

        A basis that has its own bounds is built without a pass over the data. Any other basis
        needs the range of all observations, for which ``look`` allows a pass.
        """
        actions = None if actions is None else check.count("actions", actions)
        discount = check.fraction("discount", discount)
        features, space = _features(basis, space, chunks, look)
        if (weights := (actions or 1) * features.size) > MOST_FEATURES:
            raise ValueError(
                f"actions={actions} with {features.size} features each need {weights:,} weights, "
                f"more than {MOST_FEATURES:,}: correct the number of actions, or make the basis "
                "coarser"
            )
        return cls(features, space, actions, discount)

    @property
    def blocks(self) -> int:
        """The number of blocks of weights: one for each action, or one for the values of states."""
        return 1 if self.actions is None else self.actions

    @property
    def constant(self) -> Vector | None:
        """The weights of the value function that is 1 everywhere, shape (k,), if there are any."""
        weights = self.features.constant
        return None if weights is None else np.tile(weights, self.blocks)

    def action_features(self, observations: NDArray[Any], actions: Integers) -> ActionFeatures:
        """phi(s, a) of some observations and actions."""
        return ActionFeatures(self.features, self.blocks, observations, actions)

    def batch(self, observations: ArrayLike) -> NDArray[Any]:
        """Observations as an array with an axis for them, also if it is a single one."""
        array = np.asarray(observations)
        return array[None] if array.shape == self.features.shape else array

    def greedy(self, weights: Vector) -> Greedy:
        """The policy that takes the action of the highest value."""
        return Greedy(weights.reshape(self.blocks, -1))

    def greedy_function(self, weights: Vector) -> PolicyFunction:
        """The same policy as a function of the observations alone."""
        policy, features = self.greedy(weights), self.features
        return lambda observations: policy(observations, features(observations))

    def require_actions(self, actions: Integers) -> None:
        """Raise an error that names the first action which does not exist."""
        if self.actions is None:
            return
        unknown = (actions < 0) | (actions >= self.actions)
        if unknown.any():
            row = int(unknown.argmax())
            raise ValueError(
                f"actions in row {row} is {actions[row]}, but with actions={self.actions} they go "
                f"from 0 to {self.actions - 1}"
            )

    def chosen(
        self, actions: ArrayLike, observations: NDArray[Any], matters: Mask | None = None
    ) -> Integers:
        """The actions that a policy gave for some observations, checked in rows that matter."""
        found = np.asarray(actions)
        if found.shape != (len(observations),):
            raise ValueError(
                f"policy gave actions of shape {found.shape} for {len(observations)} "
                "observations: it must give one action for each"
            )
        if found.dtype.kind not in "biu":
            raise TypeError(
                f"policy gave actions of type {found.dtype}: they must be whole numbers"
            )
        unknown = (found < 0) | (found >= self.blocks)
        if matters is not None:
            unknown &= matters
        if unknown.any():
            row = int(unknown.argmax())
            raise ValueError(
                f"policy gave action {found[row]} for the observation "
                f"{observations[row].tolist()}: actions go from 0 to {self.blocks - 1}"
            )
        return found.astype(np.int64, copy=False)


class ActionFeatures(NamedTuple):
    """phi(s, a) = e_a (x) phi(s) of N observations and actions, in batches as products need it."""

    features: Features
    blocks: int
    observations: NDArray[Any]
    actions: Integers

    def dot(self, weights: Vector) -> Vector:
        """The products phi(s, a)'weights, shape (N,)."""
        by_action, products = weights.reshape(self.blocks, -1), np.empty(len(self.actions))
        for rows in self._batches():
            x = self.features(self.observations[rows])
            products[rows] = np.einsum("ij,ij->i", x, by_action[self.actions[rows]])
        return products

    def sum(self, weights: Vector) -> Vector:
        """The sum of weight times phi(s, a), shape (k,)."""
        total = np.zeros((self.blocks, self.features.size))
        for rows in self._batches():
            by_action = np.eye(self.blocks)[self.actions[rows]] * weights[rows, None]
            total += by_action.T @ self.features(self.observations[rows])
        return total.ravel()

    def mean(self) -> Vector:
        """The mean of phi(s, a), shape (k,)."""
        return self.sum(np.full(len(self.actions), 1.0 / len(self.actions)))

    def _batches(self) -> Iterator[slice]:
        size = batch_rows(self.features)
        return (slice(start, start + size) for start in range(0, len(self.actions), size))


# The range of the observations --------------------------------------------------------------------


def _features(
    basis: BasisLike, space: gym.Space[Any] | None, chunks: Iterable[Transitions], look: bool
) -> tuple[Features, gym.Space[Any]]:
    recipe = as_basis(basis)
    if space is not None:
        return recipe.build(space), space
    (first,) = first_chunks(chunks, 1)
    if not are_states(first.observations):
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


def are_states(observations: NDArray[Any]) -> bool:
    """Whether the observations are whole numbers: the states of a Discrete space."""
    return observations.ndim == 1 and observations.dtype.kind in "iu"


def observed_space(chunks: Iterable[Transitions]) -> gym.Space[Any]:
    """The smallest space of all observations: Discrete if they are whole numbers, else a Box."""
    low, high, states = over_chunks(
        chunks,
        _range_of_chunk,
        lambda a, b: (np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] and b[2]),
    )
    if states:
        return gym.spaces.Discrete(int(high - low) + 1, start=int(low))
    return gym.spaces.Box(low, high, np.shape(low), np.float64)


def _range_of_chunk(chunk: Transitions) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """The least and the greatest numbers, and whether all observations are whole numbers."""
    columns = chunk.observations, chunk.next_observations
    low = np.minimum(*(column.min(axis=0) for column in columns))
    high = np.maximum(*(column.max(axis=0) for column in columns))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        chunk.checked()  # names the row that is not finite
    return low, high, all(map(are_states, columns))


def sample_observations(chunks: Iterable[Transitions], count: int = 2000) -> Matrix:
    """Some observations from all over the data, shape (N, d), the same ones at every call."""

    def thinned(rows: Matrix) -> Matrix:
        places = np.linspace(0, len(rows) - 1, min(count, len(rows)))
        return rows[places.astype(np.int64)]

    return over_chunks(
        chunks,
        lambda chunk: thinned(chunk.observations.reshape(chunk.size, -1).astype(np.float64)),
        lambda before, after: thinned(np.concatenate([before, after])),
    )


# The sums of a policy -----------------------------------------------------------------------------


class PolicySums(NamedTuple):
    """The result of a pass over some transitions with one policy.

    With traces, the statistics have a single block of k features.
    """

    statistics: Statistics
    td_errors: TDErrorSums
    policy: bytes  # digest of its actions in the next states, 16 bytes for each chunk
    changed: int  # next states in which its action differs from that of the previous policy
    ahead: Vector  # sum of phi(s', pi(s')) over the next states that are not terminal, (k,)
    traces: Continuation | None = None  # how the sums go on, if they have traces

    @property
    def squared_length(self) -> float | None:
        """The mean of |phi(s)|^2; None if it follows from C."""
        count = float(self.statistics.count.sum())
        return None if self.traces is None else self.traces.feature_square / count

    def merge(self, other: PolicySums) -> PolicySums:
        """The sums over these transitions followed by others."""
        statistics = self.statistics.merge(other.statistics)
        errors = self.td_errors.merge(other.td_errors)
        traces = None
        if self.traces is not None and other.traces is not None:
            traces = self.traces.then(other.traces, statistics, errors)
        ahead: Vector = self.ahead + other.ahead
        digests, changed = self.policy + other.policy, self.changed + other.changed
        return PolicySums(statistics, errors, digests, changed, ahead, traces)

    @staticmethod
    def mixture(mixed: Sequence[PolicySums]) -> PolicySums:
        """The sums of the policy that follows each of these with the same probability.

        The trace that goes on after the last row is that of the last policy.
        """
        separate = [sums._replace(traces=None) for sums in mixed]
        total, share = reduce(PolicySums.merge, separate), 1.0 / len(mixed)
        gram, cross, count = total.statistics
        return total._replace(
            statistics=Statistics(gram * share, cross * share, count // len(mixed)),
            td_errors=TDErrorSums(*(part * share for part in total.td_errors)),
            ahead=total.ahead * share,
            traces=mixed[-1].traces,
        )


def sums_of_policy(
    problem: Problem,
    policy: BatchPolicy,
    chunks: Iterable[Transitions],
    previous: BatchPolicy | None = None,
    trace_decay: float = 0.0,
) -> PolicySums:
    """Make one pass over the data: the sums of a policy, and how it differs from the previous."""
    work = partial(_sums_of_chunk, problem, policy, previous, trace_decay)
    with np.errstate(over="ignore", invalid="ignore"):  # for `require_finite` to report
        return over_chunks(chunks, work, PolicySums.merge)


def _sums_of_chunk(
    problem: Problem,
    policy: BatchPolicy,
    previous: BatchPolicy | None,
    trace_decay: float,
    chunk: Transitions,
) -> PolicySums:
    features, shape = problem.features, (problem.blocks, problem.features.size)
    blocks = (1, problem.blocks * features.size) if trace_decay else shape
    statistics, td_errors, ahead = empty(*blocks), TDErrorSums.empty(*blocks), np.zeros(shape)
    digest, changed, traces = blake2b(digest_size=16), 0, None
    with wrong_values_named(problem, chunk), one_thread():
        if trace_decay:
            require_order(chunk)
        for batch in chunk.batches(batch_rows(features)):
            x, y = features(batch.observations), features(batch.next_observations)
            actions = np.zeros(batch.size, np.int64) if problem.actions is None else batch.actions
            next_actions = next_actions_of(problem, policy, batch, y)
            discount = batch.discounts(problem.discount)
            if trace_decay:
                rows = _rows(batch, x, y, actions, next_actions, discount)
                traces = accumulate_traces(statistics, td_errors, rows, trace_decay, traces)
            else:
                accumulate(statistics, x, actions, batch.rewards, y, next_actions, discount)
                td_errors.add(y, next_actions, batch.rewards, discount)
            digest.update(next_actions.tobytes())
            for action, total in enumerate(ahead):
                total += (next_actions == action) @ y
            before = TERMINAL if previous is None else next_actions_of(problem, previous, batch, y)
            changed += int((next_actions != before).sum())
    return PolicySums(statistics, td_errors, digest.digest(), changed, ahead.ravel(), traces)


def _rows(
    batch: Transitions,
    x: Matrix,
    y: Matrix,
    actions: Integers,
    next_actions: Integers,
    discount: float | Vector,
) -> Rows:
    discounts = np.broadcast_to(discount, batch.size)
    goes_on = ~(batch.terminated | batch.truncated)
    ends = batch.observations[0], batch.next_observations[-1]
    return Rows(x, y, actions, next_actions, batch.rewards, discounts, goes_on, *ends)


def require_order(chunk: Transitions) -> None:
    """Raise an error at the first row that ends its episode without saying so."""
    ends = chunk.with_inferred_truncation().truncated & ~chunk.truncated
    if ends.any():
        row = int(ends.argmax())
        raise ValueError(
            f"row {row + 1} does not start where row {row} led, and row {row} is neither "
            "terminated nor truncated: traces need the rows of an episode in their order, and "
            "its last row marked"
        )


@contextmanager
def wrong_values_named(problem: Problem, chunk: Transitions) -> Iterator[None]:
    """If something is wrong with a batch, check the chunk to name the column and the row in it.

    The values in a batch are checked anyway, by the features and by `accumulate`.
    """
    try:
        yield
    except (TypeError, ValueError):
        chunk.checked()
        problem.require_actions(chunk.actions)
        raise


def next_actions_of(
    problem: Problem, policy: BatchPolicy, batch: Transitions, y: Matrix
) -> Integers:
    """The actions of a policy in the next states, checked; TERMINAL where the state is terminal."""
    allowed, going_on = batch.next_allowed, ~batch.terminated
    masks = () if allowed is None else (allowed,)
    found = policy(batch.next_observations, y, *masks)
    actions = problem.chosen(found, batch.next_observations, going_on)
    if allowed is not None and problem.actions is not None:
        rows = np.flatnonzero(going_on)
        forbidden = rows[~allowed[rows, actions[rows]]]
        if len(forbidden):
            row = int(forbidden[0])
            raise ValueError(
                f"policy gave action {actions[row]} for the observation "
                f"{batch.next_observations[row].tolist()}, where next_allowed forbids it"
            )
    return np.where(going_on, actions, TERMINAL)
