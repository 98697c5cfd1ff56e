"""Tables of what followed what, models made of them, and the best policies of these models."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.core.compiled import jit, jit_borrowing
from rblspi.core.types import Allowed, Integers, Matrix, Vector
from rblspi.environments.lookup import make
from rblspi.features import BasisLike, OneHot, as_basis
from rblspi.features.bounds import observation_shape, states_of
from rblspi.online.agent import Agent, Cost

#: outcomes that are kept for a state and action
MOST_OUTCOMES = 64
#: place of an outcome beyond those that are kept
NAMELESS = -1
#: places in `Table.rewards`: mean, and sum of squares about it
MEAN, SQUARES = range(2)
#: places in `Table.surprises`: repeated visits with a new outcome; sum of 1 / (n + 1) over all
SURPRISES, EXPOSURE = range(2)
#: error of planned values, relative to their range
PRECISION = 1e-4
#: the change that rounding may cause for ever, relative to the values
ROUNDING = 1e-14
#: instead of a place elsewhere: all states alike
ANYWHERE = -1


class Model(NamedTuple):
    """A model of the environment, apart from which outcomes there are."""

    probabilities: Matrix  # of the outcomes seen           (k, outcomes)
    elsewhere: Vector  # probability of the outcome below   (k,)
    place: Integers  # state, S for the end, or ANYWHERE    (k,)
    rewards: Vector  #                                      (k,)


class Table(NamedTuple):
    """What was seen, by pair: pair a S + s is action a in state s of S.

    The outcome S is the end of the episode.
    """

    outcomes: Integers  # next states                           (k, outcomes)
    counts: Integers  # how often each followed                 (k, outcomes)
    sizes: Integers  # how many outcomes there are              (k,)
    visits: Integers  #                                         (k,)
    visits_before: Integers  # at the last plan                 (k,)
    forbidden: Integers  # 1 where the pair was not allowed     (k,)
    rewards: Matrix  # MEAN and SQUARES of every pair           (k, 2)
    surprises: Matrix  # SURPRISES and EXPOSURE by action       (actions, 2)
    discount: float
    workspace_model: Model
    workspace_values: Vector  # state values; 0 after the end   (S + 1,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        pairs, outcomes = self.outcomes.shape
        states = pairs // actions
        return {"outcomes": (0, states), "sizes": (0, outcomes), "forbidden": (0, 1)}


def new_table(actions: int, states: int, discount: float) -> Table:
    """Before the first step."""
    k, most = actions * states, min(states + 1, MOST_OUTCOMES)
    whole = [np.zeros(k, np.int64) for _ in range(5)]
    return Table(
        outcomes=np.zeros((k, most), np.int64),
        counts=np.zeros((k, most), np.int64),
        sizes=whole[0],
        visits=whole[1],
        visits_before=whole[2],
        forbidden=whole[4],
        rewards=np.zeros((k, 2)),
        surprises=np.ones((actions, 2)),
        discount=discount,
        workspace_model=Model(np.zeros((k, most)), np.zeros(k), whole[3], np.zeros(k)),
        workspace_values=np.zeros(states + 1),
    )


@jit_borrowing
def index(x: Vector) -> int:
    """The state of a one-hot vector."""
    for i in range(len(x)):
        if x[i] > 0.0:
            return i
    return 0


@jit_borrowing
def best_action(values: Vector, x: Vector, allowed: Allowed) -> int:
    """argmax_a Q(s, a) over the allowed actions; ties go to the first of them."""
    states, best = len(x), -1
    state = index(x)
    for a in range(len(values) // states):
        if allowed[a] and (best < 0 or values[a * states + state] > values[best * states + state]):
            best = a
    return max(best, 0)


@jit_borrowing
def allow(table: Table, x: Vector, allowed: Allowed) -> None:
    """Write down which actions are allowed in a state."""
    states, state = len(x), index(x)
    for a in range(len(allowed)):
        table.forbidden[a * states + state] = 0 if allowed[a] else 1


@jit_borrowing
def count_outcome(table: Table, pair: int, outcome: int) -> int:
    """Count a visit and what followed; the place of that, or NAMELESS if it is not kept."""
    size, n = table.sizes[pair], table.visits[pair]
    surprises = table.surprises[pair // (len(table.workspace_values) - 1)]
    table.visits[pair] += 1
    if n > 0:
        surprises[EXPOSURE] += 1.0 / (n + 1)
    for i in range(size):
        if table.outcomes[pair, i] == outcome:
            table.counts[pair, i] += 1
            return int(i)
    if n > 0:
        surprises[SURPRISES] += 1.0
    if size == table.outcomes.shape[1]:
        return NAMELESS
    table.outcomes[pair, size] = outcome
    table.counts[pair, size] = 1
    table.sizes[pair] = size + 1
    return int(size)


@jit_borrowing
def take_reward(table: Table, pair: int, reward: float) -> None:
    """Mean and squares of the rewards of a pair, whose visit is counted already (Welford)."""
    rewards = table.rewards[pair]
    difference = reward - rewards[MEAN]
    rewards[MEAN] += difference / table.visits[pair]
    rewards[SQUARES] += difference * (reward - rewards[MEAN])


@jit_borrowing
def reward_noise(table: Table) -> float:
    """The largest variance that the rewards of a pair have shown."""
    largest = 0.0
    for pair in range(len(table.visits)):
        if table.visits[pair] > 1:
            largest = max(largest, table.rewards[pair, SQUARES] / (table.visits[pair] - 1))
    return largest


@jit
def concentration(table: Table, pair: int) -> float:
    """The weight c, in visits, of what never followed a pair; nameless outcomes add to it.

    After n visits, the next outcome is new with probability c / (n + c). For each action, and with
    one more of both for a start, c is the number of repeated visits with a new outcome over the sum
    of 1 / (n + 1) over all repeated visits.
    """
    surprises = table.surprises[pair // (len(table.workspace_values) - 1)]
    nameless = table.visits[pair] - table.counts[pair].sum()
    repeated = max(surprises[SURPRISES], 1.0) / max(surprises[EXPOSURE], 1.0)
    return float(repeated + max(nameless, 0))


@jit
def plan(table: Table, action_values: Vector) -> None:
    """Value iteration in the model of the workspace, from the action values that are given.

    States are swept in both directions in turn, and new values are used at once, until a sweep
    changes none by more than (1 - discount) PRECISION times the range of the values.
    """
    states = len(table.workspace_values) - 1
    values = table.workspace_values[:states]
    table.workspace_values[states] = 0.0  # after the end
    for s in range(states):
        values[s] = _state_value(table, s, action_values)
    change, allowed, forward = 1.0, 0.0, False
    while change > allowed:
        forward = not forward
        change, average = 0.0, values.mean()
        for i in range(states):
            s = i if forward else states - 1 - i
            before = values[s]
            values[s] = _back_up(table, s, average, action_values)
            change = max(change, abs(values[s] - before))
        low, high = values.min(), values.max()
        allowed = (1.0 - table.discount) * PRECISION * (high - low)
        allowed = max(allowed, ROUNDING * max(abs(low), abs(high)))


@jit_borrowing
def _back_up(table: Table, state: int, average: float, action_values: Vector) -> float:
    """R + discount sum P V for all actions in a state; the highest of them."""
    model, values = table.workspace_model, table.workspace_values
    for pair in range(state, len(action_values), len(values) - 1):
        place = model.place[pair]
        expected = model.elsewhere[pair] * (average if place == ANYWHERE else values[place])
        for i in range(table.sizes[pair]):
            expected += model.probabilities[pair, i] * values[table.outcomes[pair, i]]
        action_values[pair] = model.rewards[pair] + table.discount * expected
    return _state_value(table, state, action_values)


@jit_borrowing
def _state_value(table: Table, state: int, action_values: Vector) -> float:
    """The highest value of an allowed action; 0 if there is none, as after the end."""
    highest = -np.inf
    for pair in range(state, len(action_values), len(table.workspace_values) - 1):
        if not table.forbidden[pair]:
            highest = max(highest, action_values[pair])
    return highest if highest > -np.inf else 0.0


class TableAgent(Agent):
    """An agent that counts outcomes and plans in models of them.

    Its state has a ``table``, into whose workspace it writes models, and ``sampled`` action values.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None = None,
        *,
        discount: float = 0.99,
        seed: int | None = None,
    ) -> None:
        environment, name = make(env), type(self).__name__
        if states_of(environment.observation_space) is None:
            raise TypeError(
                f"{name} counts visits of states and needs a Discrete observation space, or one of "
                f"several discrete parts, not {environment.observation_space}: use RBLSPI, which "
                "learns with features"
            )
        if basis is not None and as_basis(basis) not in (OneHot(), OneHot(joint=True)):
            raise TypeError(f"{name} learns a table and takes no basis but OneHot(), not {basis}")
        if check.fraction("discount", discount) == 1.0:
            raise ValueError(
                f"discount=1: a sampled model may go on for ever, and {name} plans in it with a "
                "discount below 1, such as 0.99"
            )
        self._best: tuple[int, Vector] = (-1, np.empty(0))  # visits behind it, action values
        single = observation_shape(environment.observation_space) == ()
        super().__init__(environment, OneHot(joint=not single), discount=discount, seed=seed)

    @abstractmethod
    def _make_best_model(self) -> None:
        """Write the best estimate of the model into the workspace."""

    def _weights(self, explore: bool) -> Vector:
        sampled: Vector = self.state.sampled
        return sampled if explore else self._best_estimate()

    def _best_estimate(self) -> Vector:
        """Action values in the best estimate of the model."""
        visits = int(self.state.table.visits.sum())
        if self._best[0] != visits:
            values = np.zeros_like(self.state.sampled)
            self._make_best_model()
            plan(self.state.table, values)
            self._best = (visits, values)
        return self._best[1]

    def cost(self) -> Cost:
        """About what learning takes, if a model is planned in every hundred steps."""
        usual = super().cost()
        sweeps = math.log(1e-2 * PRECISION) / math.log(max(self.discount, 0.01))
        return usual._replace(seconds_a_step=1e-8 * sweeps * usual.weights / 100)

    def diagnostics(self) -> dict[str, float]:
        """The share of states and actions that were tried."""
        return {"tried": float(np.mean(self.state.table.visits > 0))}
