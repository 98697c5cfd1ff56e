"""Agents that plan in models of tables, by value iteration where values still change.

**Loops.** An action that leads back to its own state with probability p is worth as much as one
whose reward and other probabilities are divided by 1 - discount p, as far as the value of the state
is concerned. Where nothing better is known than to stay, this replaces hundreds of iterations.

**Order.** After the first sweep few states still change. Only those are looked at again that lead
to a state whose value has changed, as in prioritised sweeping, but in the order of their numbers,
downwards and upwards in turn.
"""

from __future__ import annotations

import math

import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.settings import Setting
from rblspi.core.types import Integers, Vector
from rblspi.environments.spaces import observation_shape, states_of
from rblspi.features import BasisLike, OneHot, as_basis
from rblspi.features.one_hot import WHOLE
from rblspi.offline.ensemble import usual_value
from rblspi.offline.table_values import Places, table_values
from rblspi.online.agent import Agent, Cost
from rblspi.online.table import ANYWHERE, DRAWS, MOST_OUTCOMES, Table, differs, end_of
from rblspi.policies.values import Draws
from rblspi.rollout.memory import SEEN

#: transitions that are kept: 8 MB, because intervals in a table are as narrow as these are many
MOST_REMEMBERED = 100_000
#: error of planned values, relative to their range
PRECISION = 1e-4
#: the change that rounding may cause for ever, relative to the values
ROUNDING = 1e-14
#: instead of a transition
NONE = -1
#: the number of a transition is that of its pair times this, and its place among the pair's
#: outcomes; the last place is that of elsewhere
WIDTH = MOST_OUTCOMES + 1


class TableAgent(Agent):
    """An agent that counts outcomes and acts by plans in models drawn from what they tell.

    Its state has a ``table``, into whose workspace models are written, and ``sampled``, the action
    values in the model that it acts by.
    """

    most_remembered = MOST_REMEMBERED

    discount = Setting(0.99, check.discount_of_plans)
    #: transitions behind it, action values and draws around them
    _best: tuple[int, Vector, Draws] | None = None

    def _recipe(self, given: BasisLike | None) -> BasisLike:
        space, name = self.env.observation_space, type(self).__name__
        basis = None if given is None else as_basis(given)
        whole = basis == WHOLE
        if states_of(space, whole) is None:
            raise TypeError(
                f"{name} counts visits of states and needs a Discrete observation space, or one of "
                f"several discrete parts, not {space}: use FittedRmax or OptimisticLSVI"
            )
        if basis not in (None, OneHot(), OneHot(joint=True), WHOLE):
            raise TypeError(f"{name} learns a table and takes no basis but OneHot(), not {given}")
        return WHOLE if whole else OneHot(joint=observation_shape(space) != ())

    def _weights(self, explore: bool) -> Vector:
        """Action values in the sampled model, or the mean over models of what is remembered."""
        if explore or not self.session.memory.size:
            return np.asarray(self.state.sampled)
        return self._estimate()[1]

    def _draws(self) -> Draws | None:
        return self._estimate()[2] if self.session.memory.size else None

    def _estimate(self) -> tuple[int, Vector, Draws]:
        seen = int(self.session.memory.counters[SEEN])
        if self._best is None or self._best[0] != seen:
            log = self.session.memory.transitions(self.features.shape)
            log = Places.of(log, self.features).log
            allowed = self.state.table.forbidden.reshape(self.actions, -1) == 0
            start = np.full(allowed.shape, usual_value(log, self.discount))
            weights, draws = table_values(log, start, self.discount, allowed)
            self._best = (seen, weights.ravel(), draws)
        return self._best

    def cost(self) -> Cost:
        """About what learning takes, if a model is planned in every hundred steps."""
        usual = super().cost()
        sweeps = math.log(1e-2 * PRECISION) / math.log(max(self.discount, 0.01))
        return usual._replace(seconds_a_step=1e-8 * sweeps * usual.weights / 100, advice="")

    def diagnostics(self) -> dict[str, float]:
        """The number of models drawn, and the share of states and actions that were tried."""
        table: Table = self.state.table
        return {"models": float(table.counters[DRAWS]), "tried": float(np.mean(table.visits > 0))}


@jit_borrowing
def plan(table: Table, action_values: Vector) -> None:
    """Find the action values of the model in the workspace, from those that are given.

    It ends when a sweep over all states changes none by more than (1 - discount) PRECISION times
    the range of the values, so that these are right to within PRECISION times their range.
    """
    prepare(table, action_values)
    waiting, last = table.workspace_plan.waiting, end_of(table) - 1
    changed = True
    while changed:
        for s in range(last + 1):
            waiting[s] = 1
        changed, low, high = _pass(table, action_values, _allowed(table), 0, last, False)
        _settle(table, action_values, low, high)


@jit_borrowing
def plan_again(table: Table, action_values: Vector) -> None:
    """As `plan`, after a change of the model or of what is allowed where pairs differ since.

    The mean of all values is not followed: the model must not lead ANYWHERE.
    """
    states = end_of(table)
    low, high = states, -1
    for pair in range(len(table.visits)):
        if differs(table, pair):
            _connect(table, pair)
            state = pair % states
            table.workspace_plan.waiting[state] = 1
            low, high = min(low, state), max(high, state)
    _settle(table, action_values, low, high)


@jit_borrowing
def prepare(table: Table, action_values: Vector) -> None:
    """Make the lists of the workspace, and the values of states that belong to action values.

    These are of the last plan, so that what has been allowed or forbidden since is a change.
    """
    plan_, states = table.workspace_plan, end_of(table)
    plan_.values[states] = 0.0  # after the end
    for s in range(states):
        plan_.waiting[s] = 0
        plan_.values[s] = _highest(table.forbidden_before, action_values, s, states)
    for s in range(states + 2):
        plan_.newest[s] = NONE
    for pair in range(len(table.visits)):
        plan_.linked[pair] = 0
        _connect(table, pair)
        if table.workspace_model.elsewhere[pair] > 0.0:
            _link(table, pair, plan_.older.shape[1] - 1, _elsewhere(table, pair))
    plan_.ready[0] = 1


@jit_inlined
def _connect(table: Table, pair: int) -> None:
    """Find the loop of a pair, and put outcomes that are new into the lists."""
    plan_, model, state = table.workspace_plan, table.workspace_model, pair % end_of(table)
    stays = model.elsewhere[pair] if model.place[pair] == state else 0.0
    for i in range(table.sizes[pair]):
        if table.outcomes[pair, i] == state:
            stays += model.probabilities[pair, i]
    plan_.loops[pair] = table.discount * stays
    for i in range(plan_.linked[pair], table.sizes[pair]):
        _link(table, pair, i, table.outcomes[pair, i])
    plan_.linked[pair] = table.sizes[pair]


@jit_inlined
def _link(table: Table, pair: int, i: int, target: int) -> None:
    """Put a transition into the list of those to its target; loops are found without lists."""
    if target != pair % end_of(table):
        plan_ = table.workspace_plan
        plan_.older[pair, i] = plan_.newest[target]
        plan_.newest[target] = WIDTH * pair + i


@jit_inlined
def _elsewhere(table: Table, pair: int) -> int:
    place = table.workspace_model.place[pair]
    return end_of(table) + 1 if place == ANYWHERE else place


@jit_borrowing
def _settle(table: Table, action_values: Vector, low: int, high: int) -> None:
    """Pass over the states that wait, upwards and downwards in turn, until none waits.

    They are at least ``low`` and at most ``high``.
    """
    allowed, upwards = _allowed(table), True
    while low <= high:
        _, low, high = _pass(table, action_values, allowed, low, high, upwards)
        upwards = not upwards


@jit_borrowing
def _pass(
    table: Table, action_values: Vector, allowed: float, low: int, high: int, upwards: bool
) -> tuple[bool, int, int]:
    """Back up the states that wait between ``low`` and ``high``, and those that wait ahead then.

    Returns whether a state changed so much that others had to wait, and between which states some
    still do.
    """
    values, waiting = table.workspace_plan.values, table.workspace_plan.waiting
    changed, left, right = False, len(waiting), -1
    s = low if upwards else high
    while low <= s <= high:
        if waiting[s]:
            waiting[s] = 0
            before = values[s]
            _back_up(table, s, action_values)
            if abs(values[s] - before) > allowed:
                changed = True
                first, last = _let_predecessors_wait(table, s)
                if upwards:
                    high = max(high, last)
                else:
                    low = min(low, first)
                if first < s if upwards else last > s:
                    left, right = min(left, first, s), max(right, last, s)
        s += 1 if upwards else -1
    return changed, left, right


@jit_borrowing
def _allowed(table: Table) -> float:
    """The change that does not matter; the mean of the values is found on the way."""
    values, states = table.workspace_plan.values, end_of(table)
    low, high, total = np.inf, -np.inf, 0.0
    for s in range(states):
        low, high = min(low, values[s]), max(high, values[s])
        total += values[s]
    values[states + 1] = total / states
    allowed = (1.0 - table.discount) * PRECISION * (high - low)
    return float(max(allowed, ROUNDING * max(abs(low), abs(high))))


@jit_inlined
def _back_up(table: Table, state: int, action_values: Vector) -> None:
    """R + discount sum P V for all actions in a state, where V of the state itself is the result.

    The highest Q of allowed actions in the equation Q = Q' + loop (V - V') is V, where Q' was
    computed with V'. Hence V - V' is the highest (Q' - V') / (1 - loop); where no action is
    allowed, V is 0.
    """
    model, loops = table.workspace_model, table.workspace_plan.loops
    values, states = table.workspace_plan.values, end_of(table)
    before, gain = values[state], -np.inf
    for pair in range(state, len(action_values), states):
        expected = model.elsewhere[pair] * values[_elsewhere(table, pair)]
        for i in range(table.sizes[pair]):
            expected += model.probabilities[pair, i] * values[table.outcomes[pair, i]]
        action_values[pair] = model.rewards[pair] + table.discount * expected
        if not table.forbidden[pair]:
            gain = max(gain, (action_values[pair] - before) / (1.0 - loops[pair]))
    if gain == -np.inf:
        gain = -before
    for pair in range(state, len(action_values), states):
        action_values[pair] += loops[pair] * gain
    values[state] = _highest(table.forbidden, action_values, state, states)


@jit_inlined
def _highest(forbidden: Integers, action_values: Vector, state: int, states: int) -> float:
    """The highest value of an allowed action; 0 if there is none, as after the end."""
    highest = -np.inf
    for pair in range(state, len(action_values), states):
        if not forbidden[pair]:
            highest = max(highest, action_values[pair])
    return highest if highest > -np.inf else 0.0


@jit_inlined
def _let_predecessors_wait(table: Table, state: int) -> tuple[int, int]:
    """Let the states that lead to a state wait; the first and the last of them."""
    plan_, states = table.workspace_plan, end_of(table)
    first, last, transition = states, -1, plan_.newest[state]
    while transition != NONE:
        pair = transition // WIDTH
        source = pair % states
        plan_.waiting[source] = 1
        first, last = min(first, source), max(last, source)
        transition = plan_.older[pair, transition % WIDTH]
    return first, last
