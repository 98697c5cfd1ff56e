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
next outcome is new with probability c / (n + c). For each action, and with one more of both for a
start, c is therefore the number of repeated visits with a new outcome over the sum of 1 / (n + 1)
over all repeated visits. It becomes small where nothing is left to chance.

**Rewards.** After n visits of a pair its mean reward is N(mean(r), (v_max + n var(r)) / n^2), where
v_max is the largest variance of rewards that any pair has shown. Where rewards are without noise,
one visit tells all.

**What was never tried.** A pair without a visit has no model: trying it is worth
N(mu h, (h range)^2), with the mean mu and the range of all rewards so far and the horizon
h = 1 / (1 - gamma (1 - q)).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import check
from rblspi.core.compiled import jit, jit_borrowing, jit_inlined
from rblspi.core.types import Integers, Matrix, Vector
from rblspi.environments.lookup import make
from rblspi.features import BasisLike, OneHot, as_basis
from rblspi.online.agent import Agent, Cost
from rblspi.rollout.loop import CONTINUES, TERMINATED, AgentFunctions

#: outcomes that are kept for a state and action; what else follows counts as elsewhere
MOST_OUTCOMES = 64
#: error of planned values, relative to their range
PRECISION = 1e-4
#: the change that rounding may cause for ever, relative to the values
ROUNDING = 1e-14
#: instead of a place elsewhere: all states alike, for the mean model
ANYWHERE = -1

#: places in `State.counters`; MODEL_DUE: whether the next action needs a new model; STEPS_BEFORE:
#: when the last one was drawn
STEPS, TERMINATIONS, EPISODES, MODELS, MODEL_DUE, STEPS_BEFORE = range(6)
#: places in `State.surprises`: repeated visits with a new outcome; sum of 1 / (n + 1) over all
SURPRISES, EXPOSURE = range(2)
#: places in `State.rewards`
MEAN, LOWEST, HIGHEST = range(3)
#: places in `State.pair_rewards`, beside MEAN: sum of squares about the mean
SQUARES = 1


class Model(NamedTuple):
    """A model of the environment, apart from which outcomes there are."""

    probabilities: Matrix  # of the outcomes seen           (k, outcomes)
    elsewhere: Vector  # probability of the outcome below   (k,)
    place: Integers  # state, S for the end, or ANYWHERE    (k,)
    rewards: Vector  #                                      (k,)


class State(NamedTuple):
    """What the algorithm carries from step to step; pair a S + s is action a in state s."""

    outcomes: Integers  # next states, S for the end        (k, outcomes)
    counts: Integers  # how often each followed             (k, outcomes)
    sizes: Integers  # how many outcomes there are          (k,)
    visits: Integers  #                                     (k,)
    visits_before: Integers  # when the model was drawn     (k,)
    pair_rewards: Matrix  # MEAN and SQUARES of every pair  (k, 2)
    rewards: Vector  # MEAN, LOWEST, HIGHEST of all steps   (3,)
    surprises: Matrix  # SURPRISES and EXPOSURE by action   (actions, 2)
    counters: Integers  # see above                         (6,)
    sampled: Vector  # action values in the sampled model   (k,)
    discount: float
    workspace_model: Model
    workspace_values: Vector  # state values; 0 at the end  (S + 1,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        pairs, outcomes = self.outcomes.shape
        return {"outcomes": (0, pairs // actions), "sizes": (0, outcomes)}


@jit_inlined
def act(agent: State, x: Vector, rng: Any) -> int:
    """Act by the best policy of the sampled model, drawn afresh if it is due."""
    if agent.counters[MODEL_DUE]:
        draw_model(agent, rng)  # line 3
        plan(agent, agent.sampled)  # line 4
    return _best_action(agent.sampled, x)  # line 6


@jit_inlined
def observe(
    agent: State, x: Vector, action: int, reward: float, y: Vector, end: int, rng: Any
) -> None:
    """Count the transition; a new model is due after an episode, or where visits have doubled."""
    states = len(x)
    pair = action * states + _index(x)
    _count(agent, pair, states if end == TERMINATED else _index(y))  # line 8
    _take_reward(agent, pair, reward)
    if end == TERMINATED:
        agent.counters[TERMINATIONS] += 1
    if end != CONTINUES:
        agent.counters[EPISODES] += 1
        agent.counters[MODEL_DUE] = 1
    elif agent.counters[EPISODES] == 0:
        before = agent.visits_before[pair]
        doubled = agent.visits[pair] - before >= max(before, 1)
        steps = agent.counters[STEPS] - agent.counters[STEPS_BEFORE]
        if doubled or steps * (1.0 - agent.discount) >= 1.0:
            agent.counters[MODEL_DUE] = 1


@jit_borrowing
def _index(x: Vector) -> int:
    """The state of a one-hot vector."""
    for i in range(len(x)):
        if x[i] > 0.0:
            return i
    return 0


@jit_borrowing
def _best_action(values: Vector, x: Vector) -> int:
    """argmax_a Q(s, a); ties go to the first action."""
    states, best = len(x), 0
    state = _index(x)
    for a in range(1, len(values) // states):
        if values[a * states + state] > values[best * states + state]:
            best = a
    return best


@jit_borrowing
def _count(agent: State, pair: int, outcome: int) -> None:
    """Count a visit and what followed; an outcome beyond those that are kept has no name."""
    size, n = agent.sizes[pair], agent.visits[pair]
    surprises = agent.surprises[pair // (len(agent.workspace_values) - 1)]
    agent.visits[pair] += 1
    if n > 0:
        surprises[EXPOSURE] += 1.0 / (n + 1)
    for i in range(size):
        if agent.outcomes[pair, i] == outcome:
            agent.counts[pair, i] += 1
            return
    if n > 0:
        surprises[SURPRISES] += 1.0
    if size < agent.outcomes.shape[1]:
        agent.outcomes[pair, size] = outcome
        agent.counts[pair, size] = 1
        agent.sizes[pair] = size + 1


@jit_borrowing
def _take_reward(agent: State, pair: int, reward: float) -> None:
    """Mean and range of all rewards; mean and squares of those of the pair (Welford)."""
    overall, own = agent.rewards, agent.pair_rewards[pair]
    agent.counters[STEPS] += 1
    first = agent.counters[STEPS] == 1
    overall[LOWEST] = reward if first else min(overall[LOWEST], reward)
    overall[HIGHEST] = reward if first else max(overall[HIGHEST], reward)
    overall[MEAN] += (reward - overall[MEAN]) / agent.counters[STEPS]
    difference = reward - own[MEAN]
    own[MEAN] += difference / agent.visits[pair]
    own[SQUARES] += difference * (reward - own[MEAN])


class Prior(NamedTuple):
    """Numbers of the prior, from what was seen so far; see the module."""

    ends: float  # q
    mean: float  # mu h
    std: float  # h range
    noise: float  # v_max


@jit
def _prior(agent: State) -> Prior:
    ends = agent.counters[TERMINATIONS] / max(agent.counters[STEPS], 1)
    size = agent.rewards[HIGHEST] - agent.rewards[LOWEST]
    if size == 0.0:  # then what rewards tell of the units is their size
        size = abs(agent.rewards[MEAN])
    if size == 0.0:
        size = 1.0
    noise = 0.0
    for pair in range(len(agent.visits)):
        if agent.visits[pair] > 1:
            noise = max(noise, agent.pair_rewards[pair, SQUARES] / (agent.visits[pair] - 1))
    horizon = 1.0 / (1.0 - agent.discount * (1.0 - ends))
    return Prior(ends, horizon * agent.rewards[MEAN], horizon * size, noise)


@jit
def _concentration(agent: State, pair: int) -> float:
    """The weight c of elsewhere, by the action of the pair; outcomes without a name add to it."""
    surprises = agent.surprises[pair // (len(agent.workspace_values) - 1)]
    nameless = agent.visits[pair] - agent.counts[pair].sum()
    repeated = max(surprises[SURPRISES], 1.0) / max(surprises[EXPOSURE], 1.0)
    return float(repeated + max(nameless, 0))


@jit
def draw_model(agent: State, rng: Any) -> None:
    """Draw a model from the posterior into the workspace."""
    model, prior = agent.workspace_model, _prior(agent)
    states = len(agent.workspace_values) - 1
    for pair in range(len(agent.visits)):
        n, normal = agent.visits[pair], rng.standard_normal()
        if n == 0:
            _leave_untried(model, pair, prior.mean + prior.std * normal)
            continue
        variance = (prior.noise + agent.pair_rewards[pair, SQUARES]) / n**2
        model.rewards[pair] = agent.pair_rewards[pair, MEAN] + math.sqrt(variance) * normal
        _draw_probabilities(agent, pair, rng)
        over, place = rng.random() < prior.ends, int(states * rng.random())
        model.place[pair] = states if over else place
    agent.visits_before[:] = agent.visits
    agent.counters[STEPS_BEFORE] = agent.counters[STEPS]
    agent.counters[MODEL_DUE] = 0
    agent.counters[MODELS] += 1


@jit
def _leave_untried(model: Model, pair: int, value: float) -> None:
    """Let a pair be worth a value, which nothing follows."""
    model.rewards[pair] = value
    model.elsewhere[pair] = 0.0
    model.place[pair] = ANYWHERE


@jit
def _draw_probabilities(agent: State, pair: int, rng: Any) -> None:
    """Dirichlet(n_1, ..., n_m, c), as gamma variables over their sum."""
    model, total = agent.workspace_model, 0.0
    for i in range(agent.sizes[pair]):
        model.probabilities[pair, i] = rng.standard_gamma(float(agent.counts[pair, i]))
        total += model.probabilities[pair, i]
    model.elsewhere[pair] = rng.standard_gamma(_concentration(agent, pair))
    total += model.elsewhere[pair]
    model.elsewhere[pair] /= total
    for i in range(agent.sizes[pair]):
        model.probabilities[pair, i] /= total


@jit
def mean_model(agent: State) -> None:
    """Write the mean of the posterior into the workspace."""
    model, prior = agent.workspace_model, _prior(agent)
    for pair in range(len(agent.visits)):
        if agent.visits[pair] == 0:
            _leave_untried(model, pair, prior.mean)
            continue
        concentration = _concentration(agent, pair)
        total = agent.counts[pair].sum() + concentration
        for i in range(agent.sizes[pair]):
            model.probabilities[pair, i] = agent.counts[pair, i] / total
        model.elsewhere[pair] = (1.0 - prior.ends) * concentration / total
        model.place[pair] = ANYWHERE
        model.rewards[pair] = agent.pair_rewards[pair, MEAN]


@jit
def plan(agent: State, action_values: Vector) -> None:
    """Value iteration in the model of the workspace, from the action values that are given.

    States are swept in both directions in turn, and new values are used at once, until a sweep
    changes none by more than (1 - discount) PRECISION times the range of the values.
    """
    states = len(agent.workspace_values) - 1
    values = agent.workspace_values[:states]
    agent.workspace_values[states] = 0.0  # after the end
    for s in range(states):
        values[s] = action_values[s::states].max()
    change, allowed, forward = 1.0, 0.0, False
    while change > allowed:
        forward = not forward
        change, average = 0.0, values.mean()
        for i in range(states):
            s = i if forward else states - 1 - i
            before = values[s]
            values[s] = _back_up(agent, s, average, action_values)
            change = max(change, abs(values[s] - before))
        low, high = values.min(), values.max()
        allowed = (1.0 - agent.discount) * PRECISION * (high - low)
        allowed = max(allowed, ROUNDING * max(abs(low), abs(high)))


@jit_borrowing
def _back_up(agent: State, state: int, average: float, action_values: Vector) -> float:
    """R + discount sum P V for all actions in a state; the highest of them."""
    model, values = agent.workspace_model, agent.workspace_values
    highest = -np.inf
    for pair in range(state, len(action_values), len(values) - 1):
        place = model.place[pair]
        expected = model.elsewhere[pair] * (average if place == ANYWHERE else values[place])
        for i in range(agent.sizes[pair]):
            expected += model.probabilities[pair, i] * values[agent.outcomes[pair, i]]
        action_values[pair] = model.rewards[pair] + agent.discount * expected
        highest = max(highest, action_values[pair])
    return highest


def new_state(actions: int, states: int, discount: float) -> State:
    """Before the first step."""
    k, most = actions * states, min(states + 1, MOST_OUTCOMES)
    whole: list[NDArray[np.int64]] = [np.zeros(k, np.int64) for _ in range(4)]
    counters = np.zeros(6, np.int64)
    counters[MODEL_DUE] = 1
    return State(
        outcomes=np.zeros((k, most), np.int64),
        counts=np.zeros((k, most), np.int64),
        sizes=whole[0],
        visits=whole[1],
        visits_before=whole[2],
        pair_rewards=np.zeros((k, 2)),
        rewards=np.zeros(3),
        surprises=np.ones((actions, 2)),
        counters=counters,
        sampled=np.zeros(k),
        discount=discount,
        workspace_model=Model(np.zeros((k, most)), np.zeros(k), whole[3], np.zeros(k)),
        workspace_values=np.zeros(states + 1),
    )


class PSRL(Agent):
    """Learns a table online, acting by the best policy of models sampled from a posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete observations and actions, or the id of one.
    basis : OneHot, optional
        There is no other choice: the values are a table.
    discount : float
        gamma, below 1.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.

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

    functions = AgentFunctions(act, observe, numba.typeof(new_state(1, 1, 0.0)))
    state: State

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None = None,
        *,
        discount: float = 0.99,
        seed: int | None = None,
    ) -> None:
        environment = make(env)
        if not isinstance(environment.observation_space, gym.spaces.Discrete):
            raise TypeError(
                f"PSRL counts visits of states and needs a Discrete observation space, not "
                f"{environment.observation_space}: use RBLSPI, which learns with features"
            )
        if basis is not None and as_basis(basis) != OneHot():
            raise TypeError(f"PSRL learns a table and takes no basis but OneHot(), not {basis}")
        if check.fraction("discount", discount) == 1.0:
            raise ValueError(
                "discount=1: a sampled model may go on for ever, and PSRL plans in it with a "
                "discount below 1, such as 0.99"
            )
        self._best: tuple[int, Vector] = (-1, np.empty(0))  # steps behind it, action values
        super().__init__(environment, OneHot(), discount=discount, seed=seed)

    def _initial_state(self) -> State:
        return new_state(self.actions, self.features.size, self.discount)

    def _weights(self, explore: bool) -> Vector:
        return self.state.sampled if explore else self._best_estimate()

    def _best_estimate(self) -> Vector:
        """Action values in the mean of the posterior."""
        steps = int(self.state.counters[STEPS])
        if self._best[0] != steps:
            values = np.zeros_like(self.state.sampled)
            mean_model(self.state)
            plan(self.state, values)
            self._best = (steps, values)
        return self._best[1]

    def cost(self) -> Cost:
        """About what learning takes, if a model is planned in every hundred steps."""
        usual = super().cost()
        sweeps = math.log(1e-2 * PRECISION) / math.log(max(self.discount, 0.01))
        return usual._replace(seconds_a_step=1e-8 * sweeps * usual.weights / 100)

    def diagnostics(self) -> dict[str, float]:
        """The number of models drawn, and the share of states and actions that were tried."""
        tried = float(np.mean(self.state.visits > 0))
        return {"models": float(self.state.counters[MODELS]), "tried": tried}
