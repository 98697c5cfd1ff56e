"""Tables of what followed what, and what they tell about what may follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.types import Allowed, Integers, Matrix, Vector
from rblspi.rollout.memory import Transition, ends_episode, is_terminal

#: outcomes that are kept for a state and action; rows of 64 would start 512 bytes apart, and
#: their first elements would compete for one eighth of the processor's cache
MOST_OUTCOMES = 63
#: place of an outcome beyond those that are kept
NAMELESS = -1
#: places in `Table.rewards`: mean, and sum of squares about it
MEAN, SQUARES = range(2)
#: places in `Table.surprises`: repeated visits with a new outcome; sum of 1 / (n + 1) over all
SURPRISES, EXPOSURE = range(2)
#: places in `Table.counters`; DRAWS: models that were drawn; DRAWN_AT: steps before the last one
STEPS, TERMINATIONS, EPISODES, DRAWS, DRAWN_AT = range(5)
#: instead of a place elsewhere: all states alike
ANYWHERE = -1


class TableModel(NamedTuple):
    """A model of the environment, apart from which outcomes there are."""

    probabilities: Matrix  # of the outcomes seen           (k, outcomes)
    elsewhere: Vector  # probability of the outcome below   (k,)
    place: Integers  # state, S for the end, or ANYWHERE    (k,)
    rewards: Vector  #                                      (k,)


class TablePlan(NamedTuple):
    """The values of states in a model, and what it takes to compute them."""

    values: Vector  # of states, after the end, and ANYWHERE       (S + 2,)
    waiting: Integers  # whether a state is to be looked at again  (S,)
    loops: Vector  # discount times the probability to stay        (k,)
    newest: Integers  # transition to a state, or NONE             (S + 2,)
    older: Integers  # transition to the same state, or NONE       (k, outcomes + 1)
    linked: Integers  # outcomes of a pair that these lists have   (k,)
    ready: Integers  # whether all this is of the last plan        (1,)


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
    forbidden_before: Integers  # at the last plan              (k,)
    rewards: Matrix  # MEAN and SQUARES of every pair           (k, 2)
    surprises: Matrix  # SURPRISES and EXPOSURE by action       (actions, 2)
    counters: Integers  # see above                             (5,)
    discount: float
    workspace_model: TableModel
    workspace_plan: TablePlan

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        pairs, outcomes = self.outcomes.shape
        yes_or_no = dict.fromkeys(("forbidden", "forbidden_before"), (0, 1))
        return {"outcomes": (0, pairs // actions), "sizes": (0, outcomes), **yes_or_no}


def new_table(actions: int, states: int, discount: float) -> Table:
    """Before the first step."""
    k, most = actions * states, min(states + 1, MOST_OUTCOMES)

    def whole(*shape: int) -> Integers:
        return np.zeros(shape, np.int64)

    return Table(
        outcomes=whole(k, most),
        counts=whole(k, most),
        sizes=whole(k),
        visits=whole(k),
        visits_before=whole(k),
        forbidden=whole(k),
        forbidden_before=whole(k),
        rewards=np.zeros((k, 2)),
        surprises=np.ones((actions, 2)),
        counters=whole(5),
        discount=discount,
        workspace_model=TableModel(np.zeros((k, most)), np.zeros(k), whole(k), np.zeros(k)),
        workspace_plan=TablePlan(
            values=np.zeros(states + 2),
            waiting=whole(states),
            loops=np.zeros(k),
            newest=whole(states + 2),
            older=whole(k, most + 1),
            linked=whole(k),
            ready=whole(1),
        ),
    )


@jit_inlined
def end_of(table: Table) -> int:
    """The outcome that is the end of the episode: the number of states."""
    return len(table.workspace_plan.waiting)


@jit_inlined
def index(x: Vector) -> int:
    """The state of a one-hot vector."""
    for i in range(len(x)):
        if x[i] > 0.0:
            return i
    return 0


@jit_inlined
def best_action(values: Vector, x: Vector, allowed: Allowed) -> int:
    """argmax_a Q(s, a) over the allowed actions; ties go to the first of them."""
    states, best = len(x), -1
    state = index(x)
    for a in range(len(values) // states):
        if allowed[a] and (best < 0 or values[a * states + state] > values[best * states + state]):
            best = a
    return max(best, 0)


@jit_inlined
def allow(table: Table, x: Vector, allowed: Allowed) -> bool:
    """Write down which actions are allowed in a state; whether the last plan had others."""
    states, state, others = len(x), index(x), False
    for a in range(len(allowed)):
        pair = a * states + state
        table.forbidden[pair] = 0 if allowed[a] else 1
        if table.forbidden[pair] != table.forbidden_before[pair]:
            others = True
    return others


@jit_inlined
def count(table: Table, transition: Transition) -> tuple[int, int]:
    """Count a transition: its pair, and the place of its outcome, see `count_outcome`."""
    outcome = end_of(table)
    table.counters[STEPS] += 1
    table.counters[EPISODES] += 1 if ends_episode(transition) else 0
    if is_terminal(transition):
        table.counters[TERMINATIONS] += 1
    else:
        allow(table, transition.y, transition.next_allowed)
        outcome = index(transition.y)
    pair = transition.action * end_of(table) + index(transition.x)
    place = count_outcome(table, pair, outcome)
    rewards = table.rewards[pair]  # mean and squares by Welford's formula
    difference = transition.reward - rewards[MEAN]
    rewards[MEAN] += difference / table.visits[pair]
    rewards[SQUARES] += difference * (transition.reward - rewards[MEAN])
    return pair, place


@jit_inlined
def count_outcome(table: Table, pair: int, outcome: int) -> int:
    """Count a visit and what followed; the place of that, or NAMELESS if it is not kept."""
    size, n = table.sizes[pair], table.visits[pair]
    surprises = table.surprises[pair // end_of(table)]
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


@jit_inlined
def differs(table: Table, pair: int) -> bool:
    """Whether a pair was visited, allowed or forbidden since the last plan."""
    visited = table.visits[pair] != table.visits_before[pair]
    return bool(visited or table.forbidden[pair] != table.forbidden_before[pair])


@jit_borrowing
def take_note(table: Table) -> None:
    """Note what the plan that is now made knows, for `differs`."""
    for pair in range(len(table.visits)):
        table.visits_before[pair] = table.visits[pair]
        table.forbidden_before[pair] = table.forbidden[pair]


@jit_inlined
def has_doubled(table: Table, pair: int) -> bool:
    """Whether a pair was visited twice as often as before the last plan."""
    return bool(table.visits[pair] >= max(2 * table.visits_before[pair], 1))


@jit_inlined
def note_draw(table: Table) -> None:
    """Note that a model is drawn, for `is_over`."""
    table.counters[DRAWS] += 1
    table.counters[DRAWN_AT] = table.counters[STEPS]


@jit_inlined
def is_over(table: Table, transition: Transition) -> bool:
    """Whether the time of a drawn model is over: with its episode, if any has ended so far.

    Without episodes it lasts for 1 / (1 - gamma) steps.
    """
    steps = table.counters[STEPS] - table.counters[DRAWN_AT]
    alone = table.counters[EPISODES] == 0
    return ends_episode(transition) or bool(alone and steps * (1.0 - table.discount) >= 1.0)


@jit_inlined
def reward_noise(table: Table) -> float:
    """The largest variance that the rewards of a pair have shown."""
    largest = 0.0
    for pair in range(len(table.visits)):
        if table.visits[pair] > 1:
            largest = max(largest, table.rewards[pair, SQUARES] / (table.visits[pair] - 1))
    return largest


@jit_inlined
def concentration(table: Table, action: int) -> float:
    """The weight c, in visits, of what never followed an action.

    After n visits, the next outcome is new with probability c / (n + c). For each action, and with
    one more of both for a start, c is the number of repeated visits with a new outcome over the sum
    of 1 / (n + 1) over all repeated visits.
    """
    surprises = table.surprises[action]
    return float(max(surprises[SURPRISES], 1.0) / max(surprises[EXPOSURE], 1.0))


@jit_inlined
def nameless(table: Table, pair: int) -> int:
    """Visits whose outcomes are not kept; they add to the weight of what never followed."""
    visits = table.visits[pair]
    for i in range(table.sizes[pair]):
        visits -= table.counts[pair, i]
    return int(max(visits, 0))
