"""Optimistic posterior sampling: in every sampled model, the unknown may lead to something good.

Beside the algorithm of Tiapkin and others, here with a discount in place of a horizon, a random
value of the unknown, and plans that follow the data within an episode:

    1     every state and action starts with a pseudo-transition of weight c to the unknown
    2     for every episode:
    3         w_i ~ Gamma(n_i) for every outcome seen n_i times; for every state and action
              a mean reward r and a value u of the unknown                      `draw`
    4         Q(s, a) = (sum_i w_i (r + gamma max Q(s_i, .)) + c u(s, a)) / (sum_i w_i + c)
                                                                         `write_model`, `plan`
    5         for every step of the episode:
    6             a = argmax_a Q(s, a)                                          `act`
    7             observe r, s'; w_i += Exp(1) for this outcome                 `observe`
    8             when the visits of some state and action have doubled, or other actions are
                  allowed in s', line 4 again for all pairs visited since       `plan_again`

Where no episode has ended yet, line 3 comes every 1 / (1 - gamma) steps: a problem without episodes
is learnt by this rule alone.

Line 3 is the Bayesian bootstrap: normalised, the weights are Dirichlet(n_1, ..., n_m) distributed.
The weight c of what never happened follows from how often something new did, see `concentration`:
where outcomes are always the same, a few visits tell nearly all.

**Rewards.** After n visits, r ~ N(mean(r), (v_max + n var(r)) / n^2), as for `PSRL`.

**The value of the unknown** is u ~ N(v + 3 S, S^2). The centre v is the value of going on as the
agent did so far, and S how far values may be from that, see `find_prior`. A constant added to all
rewards, where episodes never terminate, moves all values and changes no action; other units change
units alone.

These numbers (v, S, c and v_max) are found anew with every draw, and when a reward is lower or
higher than all before. Between, the model changes only where the agent has been, and so few values
have to be planned again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rblspi.core.compiled import jit, jit_borrowing, jit_inlined
from rblspi.core.types import Allowed, Integers, Matrix, Vector
from rblspi.online.table import (
    MEAN,
    NAMELESS,
    SQUARES,
    STEPS,
    TERMINATIONS,
    Table,
    allow,
    best_action,
    concentration,
    count,
    differs,
    end_of,
    has_doubled,
    is_over,
    nameless,
    new_table,
    note_draw,
    reward_noise,
    take_note,
)
from rblspi.online.table_planning import TableAgent, plan, plan_again, prepare
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition

#: how far the unknown is above the centre, in units of the spread
OPTIMISM = 3.0

#: values of `State.due`: what the next action needs first
NOTHING, NEW_PLAN, NEW_PRIOR, NEW_DRAW = range(4)
#: places in `State.prior`: the lowest and the highest reward so far; v, S and v_max; c by action
LOWEST, HIGHEST, CENTRE, SPREAD, NOISE, CONCENTRATION = range(6)


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    table: Table
    weights: Matrix  # w, by outcome                          (k, outcomes)
    unknown: Vector  # (u - v) / S - 3 of every pair          (k,)
    errors: Vector  # of mean rewards, in their deviations    (k,)
    prior: Vector  # see above                                (5 + actions,)
    due: Integers  # see above                                (1,)
    sampled: Vector  # Q                                      (k,)


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Act by the plan, made anew if that is due."""
    if allow(agent.table, x, allowed) and agent.due[0] == NOTHING:
        agent.due[0] = NEW_PLAN
    if agent.due[0] != NOTHING:
        _plan_anew(agent, rng)
    return best_action(agent.sampled, x, allowed)  # line 6


@jit
def _plan_anew(agent: State, rng: Any) -> None:
    if agent.due[0] == NEW_DRAW:
        draw(agent, rng)  # line 3
    if agent.due[0] >= NEW_PRIOR:
        find_prior(agent)
        write_model(agent)
        plan(agent.table, agent.sampled)  # line 4
    else:
        _update_model(agent)
        plan_again(agent.table, agent.sampled)  # line 8
    take_note(agent.table)
    agent.due[0] = NOTHING


@jit_borrowing
def _update_model(agent: State) -> None:
    """Write the model of the pairs visited since the last plan; of all, after a load."""
    if not agent.table.workspace_plan.ready[0]:
        write_model(agent)
        prepare(agent.table, agent.sampled)
    for pair in range(len(agent.table.visits)):
        if differs(agent.table, pair):
            _write_pair(agent, pair)


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Count the transition, and say what is due."""
    pair, place = count(agent.table, transition)
    weight = rng.standard_exponential()
    if place != NAMELESS:
        agent.weights[pair, place] += weight  # line 7
    beyond = _is_beyond(agent, transition.reward)
    if is_over(agent.table, transition):
        agent.due[0] = NEW_DRAW
    elif beyond:
        agent.due[0] = NEW_PRIOR
    elif has_doubled(agent.table, pair):
        agent.due[0] = NEW_PLAN


@jit_inlined
def _is_beyond(agent: State, reward: float) -> bool:
    """Whether a reward is lower or higher than all before; it is then the lowest or highest."""
    prior, first = agent.prior, agent.table.counters[STEPS] == 1
    lower, higher = first or reward < prior[LOWEST], first or reward > prior[HIGHEST]
    if lower:
        prior[LOWEST] = reward
    if higher:
        prior[HIGHEST] = reward
    return bool(lower or higher)


@jit_borrowing
def find_prior(agent: State) -> None:
    """Find v, S, v_max and c from what all pairs have shown.

    With the mean discounted time to go H = 1 / (1 - gamma (1 - q)), where q is the share of steps
    that terminate, v = H mean(r). One step of a pair with the mean reward r, of whose visits the
    share e terminates, is better than v by r + gamma (1 - e) v - v. S is the largest such
    difference, times H where the step may be repeated.
    """
    table, prior = agent.table, agent.prior
    steps, discount = max(table.counters[STEPS], 1), table.discount
    horizon = 1.0 / (1.0 - discount * (1.0 - table.counters[TERMINATIONS] / steps))
    total, size = 0.0, 0.0
    for pair in range(len(table.visits)):
        total += table.visits[pair] * table.rewards[pair, MEAN]
        size = max(size, abs(table.rewards[pair, MEAN]))
    centre, spread = horizon * total / steps, 0.0
    for pair in range(len(table.visits)):
        if table.visits[pair] > 0:
            ends = _share_of_ends(table, pair)
            better = table.rewards[pair, MEAN] + (discount * (1.0 - ends) - 1.0) * centre
            spread = max(spread, abs(better) * (ends + (1.0 - ends) * horizon))
    if spread <= 1e-9 * horizon * size:  # all rewards are the same, but for rounding
        spread = size if size > 0.0 else 1.0
    prior[CENTRE], prior[SPREAD], prior[NOISE] = centre, spread, reward_noise(table)
    for action in range(len(table.surprises)):
        prior[CONCENTRATION + action] = concentration(table, action)


@jit_inlined
def _share_of_ends(table: Table, pair: int) -> float:
    for i in range(table.sizes[pair]):
        if table.outcomes[pair, i] == end_of(table):
            return float(table.counts[pair, i] / table.visits[pair])
    return 0.0


@jit
def draw(agent: State, rng: Any) -> None:
    """Draw the weights of all outcomes, and the values of what is unknown."""
    note_draw(agent.table)
    for pair in range(len(agent.unknown)):
        agent.unknown[pair] = rng.standard_normal()
        agent.errors[pair] = rng.standard_normal()
        for i in range(agent.table.sizes[pair]):
            agent.weights[pair, i] = rng.standard_gamma(float(agent.table.counts[pair, i]))


@jit_borrowing
def write_model(agent: State) -> None:
    """Write the sampled model into the workspace."""
    for pair in range(len(agent.table.sizes)):
        _write_pair(agent, pair)


@jit_inlined
def _write_pair(agent: State, pair: int) -> None:
    table, model, total = agent.table, agent.table.workspace_model, 0.0
    for i in range(table.sizes[pair]):
        weight = agent.weights[pair, i]
        model.probabilities[pair, i] = weight
        total += weight
    unknown = agent.prior[CENTRE] + agent.prior[SPREAD] * (OPTIMISM + agent.unknown[pair])
    n, reward = max(table.visits[pair], 1), table.rewards[pair, MEAN]
    std = math.sqrt(agent.prior[NOISE] + table.rewards[pair, SQUARES]) / n
    known = total * (reward + std * agent.errors[pair])
    new = agent.prior[CONCENTRATION + pair // end_of(table)] + nameless(table, pair)
    total += new
    for i in range(table.sizes[pair]):
        model.probabilities[pair, i] /= total
    model.elsewhere[pair] = 0.0  # what is unknown has a value, in the reward, but no place
    model.place[pair] = end_of(table)
    model.rewards[pair] = (known + new * unknown) / total


class OPSRL(TableAgent):
    """Learns a table online, acting by models in which the unknown may be good.

    It explores far: what was never tried is attractive from wherever it can be reached. It has
    no setting but the discount.

    Parameters
    ----------
    env, basis, discount, seed
        As for `PSRL`.

    Notes
    -----
    The best estimate, by which the agent acts when it does not explore, is the mean of ten models,
    see `rblspi.offline.table_values`.

    References
    ----------
    Tiapkin, Belomestny, Calandriello, Moulines, Munos, Naumov, Rowland, Valko and Menard,
    Optimistic posterior sampling for reinforcement learning with few samples and tight guarantees,
    Advances in Neural Information Processing Systems, 2022.
    """

    functions = AgentFunctions(act, observe)
    state: State

    def _initial_state(self) -> State:
        table = new_table(self.actions, self.features.size, self.discount)
        k = len(table.visits)
        return State(
            table=table,
            weights=np.zeros(table.outcomes.shape),
            unknown=np.zeros(k),
            errors=np.zeros(k),
            prior=np.zeros(CONCENTRATION + self.actions),
            due=np.array([NEW_DRAW]),
            sampled=np.zeros(k),
        )
