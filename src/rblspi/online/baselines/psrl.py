"""Posterior sampling for reinforcement learning: act by the best policy of a sampled model.

Beside the algorithm of Osband, Russo and Van Roy, here with a discount in place of a horizon:

    1     prior over models of the environment                         `_initial_state`
    2     for every episode:
    3         draw a model from the posterior                          `draw_model`
    4         mu = the best policy of that model                       `plan`
    5         for every step of the episode:
    6             a = mu(s)                                            `act`
    7             observe r, s'                                        the loop
    8             update the posterior                                 `observe`

Where no episode has ended yet, a model is drawn every 1 / (1 - gamma) steps, and when the visits of
some state and action have doubled since the last draw, as in UCRL2. Problems without episodes
depend on this rule alone.

The prior is scaled by the rewards and episodes seen so far, so that there is nothing to tune.
Scaling all rewards changes no action. Adding a constant to all rewards changes none either, if
episodes do not terminate.

**Transitions.** After n visits of a state and action, with counts n_1, ..., n_m of the outcomes,
the probabilities of these and of "elsewhere" are Dirichlet(n_1, ..., n_m, c). Elsewhere is a single
place, which is drawn with the model: with probability q, the share of all steps that terminated, it
is the end of the episode, otherwise any of the S states. The mean equals the mean under a Dirichlet
prior with the parameters c / S, but a draw takes one number for each outcome seen instead of one
for each state. Under this law the next outcome is new with probability c / (n + c), so that c can
be estimated from the data, see `concentration`. c becomes small in a deterministic problem.

**Rewards.** After n visits of a pair its mean reward is N(mean(r), (v_max + n var(r)) / n^2), where
v_max is the largest variance of rewards of any pair. If rewards have no noise, one visit determines
the mean.

**What was never tried.** A pair without a visit has no model: trying it is worth
N(mu h, (h range)^2), with the mean mu of all rewards so far, the range of the mean rewards of the
pairs that were tried, and the horizon h = 1 / (1 - gamma (1 - q)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rblspi.core.compiled import jit, jit_borrowing, jit_inlined
from rblspi.core.types import Allowed, Integers, Vector
from rblspi.online.table import (
    ANYWHERE,
    EPISODES,
    MEAN,
    SQUARES,
    STEPS,
    TERMINATIONS,
    Table,
    TableModel,
    allow,
    best_action,
    concentration,
    count,
    end_of,
    has_doubled,
    is_over,
    nameless,
    new_table,
    note_draw,
    reward_noise,
    take_note,
)
from rblspi.online.table_planning import TableAgent, plan
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition


class State(NamedTuple):
    """The state of the algorithm."""

    table: Table
    due: Integers  # whether the next action needs a new model   (1,)
    sampled: Vector  # action values in the sampled model        (k,)


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Act by the best policy of the sampled model, drawn afresh if it is due."""
    allow(agent.table, x, allowed)
    if agent.due[0]:
        draw_model(agent.table, rng)  # line 3
        plan(agent.table, agent.sampled)  # line 4
        agent.due[0] = 0
    return best_action(agent.sampled, x, allowed)  # line 6


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Count the transition; a new model is due after an episode, or where visits have doubled."""
    pair, _ = count(agent.table, transition)  # line 8
    doubled = agent.table.counters[EPISODES] == 0 and has_doubled(agent.table, pair)
    if doubled or is_over(agent.table, transition):
        agent.due[0] = 1


class Prior(NamedTuple):
    """Numbers of the prior, from the data so far; see the module."""

    ends: float  # q
    mean: float  # mu h
    std: float  # h range
    noise: float  # v_max


@jit
def _prior(table: Table) -> Prior:
    steps = max(table.counters[STEPS], 1)
    ends = table.counters[TERMINATIONS] / steps
    horizon = 1.0 / (1.0 - table.discount * (1.0 - ends))
    total, low, high = 0.0, np.inf, -np.inf
    for pair in range(len(table.visits)):
        n, mean = table.visits[pair], table.rewards[pair, MEAN]
        if n > 0:
            total += n * mean
            low, high = min(low, mean), max(high, mean)
    size = high - low
    if not size > 0.0:  # then only the size of the rewards gives a unit, if it is not 0
        size = abs(high) if abs(high) > 0.0 and table.counters[STEPS] > 0 else 1.0
    return Prior(ends, horizon * (total / steps), horizon * size, reward_noise(table))


@jit
def draw_model(table: Table, rng: Any) -> None:
    """Draw a model from the posterior into the workspace."""
    model, prior, states = table.workspace_model, _prior(table), end_of(table)
    for pair in range(len(table.visits)):
        n, normal = table.visits[pair], rng.standard_normal()
        if n == 0:
            _leave_untried(model, pair, prior.mean + prior.std * normal)
            continue
        variance = (prior.noise + table.rewards[pair, SQUARES]) / n**2
        model.rewards[pair] = table.rewards[pair, MEAN] + math.sqrt(variance) * normal
        _draw_probabilities(table, pair, rng)
        over, place = rng.random() < prior.ends, int(states * rng.random())
        model.place[pair] = states if over else place
    take_note(table)
    note_draw(table)


@jit
def _leave_untried(model: TableModel, pair: int, value: float) -> None:
    """Give a pair this value and no successor."""
    model.rewards[pair] = value
    model.elsewhere[pair] = 0.0
    model.place[pair] = ANYWHERE


@jit
def _draw_probabilities(table: Table, pair: int, rng: Any) -> None:
    """Dirichlet(n_1, ..., n_m, c), as gamma variables over their sum."""
    model, total = table.workspace_model, 0.0
    for i in range(table.sizes[pair]):
        model.probabilities[pair, i] = rng.standard_gamma(float(table.counts[pair, i]))
        total += model.probabilities[pair, i]
    model.elsewhere[pair] = rng.standard_gamma(_weight_of_others(table, pair))
    total += model.elsewhere[pair]
    model.elsewhere[pair] /= total
    for i in range(table.sizes[pair]):
        model.probabilities[pair, i] /= total


@jit_borrowing
def _weight_of_others(table: Table, pair: int) -> float:
    """The weight, in visits, of outcomes of a pair that are not counted separately."""
    return concentration(table, pair // end_of(table)) + nameless(table, pair)


class PSRL(TableAgent):
    """Learns a table online, acting by the best policy of models sampled from a posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete observations and actions, or the id of one.
    basis : OneHot, optional
        The only possible basis: the values are a table.
    discount, seed
        As for `RBLSPI`; the discount is below 1.

    Notes
    -----
    When the agent does not explore, it acts by the mean of ten models, see
    `rblspi.offline.table_values`.
    The priors take their units from the rewards and the episodes seen; there is nothing to tune.

    References
    ----------
    Strens, A Bayesian framework for reinforcement learning, International Conference on Machine
    Learning, 2000.
    Osband, Russo and Van Roy, (More) efficient reinforcement learning via posterior sampling,
    Advances in Neural Information Processing Systems, 2013.
    """

    functions = AgentFunctions(act, observe)
    state: State

    def _initial_state(self) -> State:
        table = new_table(self.actions, self.features.size, self.discount)
        return State(table, np.ones(1, np.int64), np.zeros(len(table.visits)))
