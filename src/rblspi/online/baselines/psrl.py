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
some state and action have doubled since the last draw, as in UCRL2. A problem without episodes is
learnt by this rule alone.

The prior takes its numbers from what was seen so far, so that there is nothing to tune. Rewards in
other units change nothing, nor does a constant added to all of them, if episodes do not terminate.

**Transitions.** After n visits of a state and action, with counts n_1, ..., n_m of what followed,
the probabilities of these and of "elsewhere" are Dirichlet(n_1, ..., n_m, c). Elsewhere is one
place, drawn with the model: the end of the episode with the share q of all steps that terminated,
otherwise any of the S states. The mean is that of a Dirichlet prior with the parameters c / S, and
a draw takes as many numbers as there are outcomes seen, not as there are states. Under this law the
next outcome is new with probability c / (n + c), which tells c from the data, see `concentration`.
It becomes small where nothing is left to chance.

**Rewards.** After n visits of a pair its mean reward is N(mean(r), (v_max + n var(r)) / n^2), where
v_max is the largest variance of rewards that any pair has shown. Where rewards are without noise,
one visit tells all.

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
    MEAN,
    SQUARES,
    Table,
    TableModel,
    allow,
    best_action,
    concentration,
    count,
    end_of,
    nameless,
    new_table,
    reward_noise,
    take_note,
)
from rblspi.online.table_planning import TableAgent, plan
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.transition import Transition, ends_episode, is_terminal

#: places in `State.counters`; MODEL_DUE: whether the next action needs a new model; STEPS_BEFORE:
#: when the last one was drawn
STEPS, TERMINATIONS, EPISODES, MODELS, MODEL_DUE, STEPS_BEFORE = range(6)


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    table: Table
    counters: Integers  # see above                         (6,)
    sampled: Vector  # action values in the sampled model   (k,)


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Act by the best policy of the sampled model, drawn afresh if it is due."""
    allow(agent.table, x, allowed)
    if agent.counters[MODEL_DUE]:
        draw_model(agent, rng)  # line 3
        plan(agent.table, agent.sampled)  # line 4
    return best_action(agent.sampled, x, allowed)  # line 6


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Count the transition; a new model is due after an episode, or where visits have doubled."""
    pair, _ = count(agent.table, transition)  # line 8
    agent.counters[STEPS] += 1
    if is_terminal(transition):
        agent.counters[TERMINATIONS] += 1
    if ends_episode(transition):
        agent.counters[EPISODES] += 1
        agent.counters[MODEL_DUE] = 1
    elif agent.counters[EPISODES] == 0:
        before = agent.table.visits_before[pair]
        doubled = agent.table.visits[pair] - before >= max(before, 1)
        steps = agent.counters[STEPS] - agent.counters[STEPS_BEFORE]
        if doubled or steps * (1.0 - agent.table.discount) >= 1.0:
            agent.counters[MODEL_DUE] = 1


class Prior(NamedTuple):
    """Numbers of the prior, from what was seen so far; see the module."""

    ends: float  # q
    mean: float  # mu h
    std: float  # h range
    noise: float  # v_max


@jit
def _prior(agent: State) -> Prior:
    ends = agent.counters[TERMINATIONS] / max(agent.counters[STEPS], 1)
    horizon = 1.0 / (1.0 - agent.table.discount * (1.0 - ends))
    total, low, high = 0.0, np.inf, -np.inf
    for pair in range(len(agent.table.visits)):
        n, mean = agent.table.visits[pair], agent.table.rewards[pair, MEAN]
        if n > 0:
            total += n * mean
            low, high = min(low, mean), max(high, mean)
    size = high - low
    if not size > 0.0:  # then what rewards tell of the units is their size, if they are not 0
        size = abs(high) if abs(high) > 0.0 and agent.counters[STEPS] > 0 else 1.0
    mean = total / max(agent.counters[STEPS], 1)
    return Prior(ends, horizon * mean, horizon * size, reward_noise(agent.table))


@jit
def draw_model(agent: State, rng: Any) -> None:
    """Draw a model from the posterior into the workspace."""
    model, prior = agent.table.workspace_model, _prior(agent)
    states = end_of(agent.table)
    for pair in range(len(agent.table.visits)):
        n, normal = agent.table.visits[pair], rng.standard_normal()
        if n == 0:
            _leave_untried(model, pair, prior.mean + prior.std * normal)
            continue
        variance = (prior.noise + agent.table.rewards[pair, SQUARES]) / n**2
        model.rewards[pair] = agent.table.rewards[pair, MEAN] + math.sqrt(variance) * normal
        _draw_probabilities(agent, pair, rng)
        over, place = rng.random() < prior.ends, int(states * rng.random())
        model.place[pair] = states if over else place
    take_note(agent.table)
    agent.counters[STEPS_BEFORE] = agent.counters[STEPS]
    agent.counters[MODEL_DUE] = 0
    agent.counters[MODELS] += 1


@jit
def _leave_untried(model: TableModel, pair: int, value: float) -> None:
    """Let a pair be worth a value, which nothing follows."""
    model.rewards[pair] = value
    model.elsewhere[pair] = 0.0
    model.place[pair] = ANYWHERE


@jit
def _draw_probabilities(agent: State, pair: int, rng: Any) -> None:
    """Dirichlet(n_1, ..., n_m, c), as gamma variables over their sum."""
    model, total = agent.table.workspace_model, 0.0
    for i in range(agent.table.sizes[pair]):
        model.probabilities[pair, i] = rng.standard_gamma(float(agent.table.counts[pair, i]))
        total += model.probabilities[pair, i]
    model.elsewhere[pair] = rng.standard_gamma(_weight_of_others(agent.table, pair))
    total += model.elsewhere[pair]
    model.elsewhere[pair] /= total
    for i in range(agent.table.sizes[pair]):
        model.probabilities[pair, i] /= total


@jit_borrowing
def _weight_of_others(table: Table, pair: int) -> float:
    """The weight, in visits, of outcomes of a pair that have no place of their own."""
    return concentration(table, pair // end_of(table)) + nameless(table, pair)


@jit
def mean_model(agent: State) -> None:
    """Write the mean of the posterior into the workspace."""
    model, prior = agent.table.workspace_model, _prior(agent)
    for pair in range(len(agent.table.visits)):
        if agent.table.visits[pair] == 0:
            _leave_untried(model, pair, prior.mean)
            continue
        weight = _weight_of_others(agent.table, pair)
        total = agent.table.counts[pair].sum() + weight
        for i in range(agent.table.sizes[pair]):
            model.probabilities[pair, i] = agent.table.counts[pair, i] / total
        model.elsewhere[pair] = (1.0 - prior.ends) * weight / total
        model.place[pair] = ANYWHERE
        model.rewards[pair] = agent.table.rewards[pair, MEAN]


class PSRL(TableAgent):
    """Learns a table online, acting by the best policy of models sampled from a posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete observations and actions, or the id of one.
    basis : OneHot, optional
        There is no other choice: the values are a table.
    discount, seed
        As for `RBLSPI`; the discount is below 1.

    Notes
    -----
    The best estimate, by which the agent acts when it does not explore, is the best policy of the
    mean of the posterior. The priors take their units from the rewards and the episodes seen; there
    is nothing to tune.

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
        counters = np.zeros(6, np.int64)
        counters[MODEL_DUE] = 1
        return State(table, counters, np.zeros(len(table.visits)))

    def _make_best_model(self) -> None:
        mean_model(self.state)

    def diagnostics(self) -> dict[str, float]:
        """The number of models drawn, and the share of states and actions that were tried."""
        return {"models": float(self.state.counters[MODELS]), **super().diagnostics()}
