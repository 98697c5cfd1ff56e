"""Randomised Bayesian least-squares policy iteration: Thompson sampling of value functions.

Beside the paper's Algorithm 1:

    1-2   m ~ N(0, I), theta = m; observe s_0
    4     a = argmax_a phi(s, a)'theta                                   `act`
    5     observe r, s'                                                  the loop
    6-8   A, C, b += ... with the next action argmax_a phi(s', a)'m      `observe`
    9     every K transitions:
    10-11     S = (alpha I + beta A'C^-1 A)^-1,  m = beta S A'C^-1 b      `improve`
    12        theta ~ N(m, S)                                            `improve`
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numba
import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.linear_algebra import dot
from rblspi.core.types import Allowed, Integers, Vector
from rblspi.environments.lookup import EnvironmentLike
from rblspi.features import BasisLike
from rblspi.model.buffer import CAPACITY, TERMINAL, Buffer, append, is_full, new_buffer
from rblspi.model.incremental import (
    IncrementalPosterior,
    absorb,
    change_rewards,
    draw_perturbation,
    fastest_method,
    forget,
    improve,
    new_incremental_posterior,
)
from rblspi.model.posterior import Posterior
from rblspi.online.agent import Agent
from rblspi.online.centre import (
    FIRST,
    TOLD,
    VALUE,
    count_reward,
    move_centre,
    new_centre,
    shaped,
    unit,
)
from rblspi.online.noise_scale import (
    MEAN_TD_ERROR,
    new_noise_scale,
    noise_std,
    sampling_std,
    update_noise_scale,
)
from rblspi.online.schedule import is_due
from rblspi.policies.choice import greedy
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.transition import Transition, ends_episode, is_terminal

#: transitions that an episode is assumed to have, where it is the period
EPISODE = 100
#: lambda = alpha / beta, where the user gives neither
PENALTY = 0.003
#: growth in the number of episodes after which the past is discounted once more
FORGETTING_STEP = 1.02


class Defaults(NamedTuple):
    """Settings that the user may leave open."""

    update_every: int
    sample_every: int
    on_policy: float
    forgetting: float


#: the paper's Algorithm 1, where alpha and beta are given
PAPER = Defaults(update_every=20, sample_every=20, on_policy=0.0, forgetting=0.0)
#: what learns reliably, where they follow from the data
UNTUNED = Defaults(update_every=5, sample_every=20, on_policy=1 / 3, forgetting=0.5)

#: places in `State.counters`; WEIGHTED_EPISODE is the episode whose transitions have weight 1
TRANSITIONS, IMPROVEMENTS, EPISODES, WEIGHTED_EPISODE = range(4)


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    buffer: Buffer  # transitions that the posterior has not absorbed yet
    mean: Vector  # m                                        (k,)
    sampled: Vector  # theta, the sampled weights            (k,)
    perturbation: Vector  # std times z, kept between samples  (k,)
    counters: Integers  # see above                          (4,)
    noise_scale: Vector  # see `noise_scale`                 (4,)
    centre: Vector  # see `centre`                           (8,)
    constant: Vector  # u: phi(s, a)'u = 1, where the prior has a centre  (k,), or (0,)
    discount: float
    noise_std: float  # beta^-1/2; 0: follows from the TD errors
    update_every: int  # K; 0: the end of the episode
    sample_every: int
    on_policy: float
    forgetting: float
    limit_ends: bool
    posterior: IncrementalPosterior


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Greedy in the sampled value function."""
    return greedy(agent.sampled, x, allowed)  # line 4


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Absorb a transition; every K of them, improve the policy and sample a value function."""
    x, action, reward, y, next_allowed, _ = transition
    ended = ends_episode(transition)
    terminal = is_terminal(transition, agent.limit_ends)
    next_action = TERMINAL if terminal else _next_action(agent, y, next_allowed)
    if agent.noise_std == 0.0:
        reward = _centred(agent, reward, terminal)
        _track_noise(agent, _td_error(agent, x, action, reward, y, next_action), reward)
    append(agent.buffer, x, action, reward, y, next_action)  # lines 6-8
    agent.counters[TRANSITIONS] += 1
    update = is_due(agent.update_every, agent.counters[TRANSITIONS], ended)  # line 9
    first = update and agent.counters[IMPROVEMENTS] == 0  # nothing was sampled yet
    sample = first or is_due(agent.sample_every, agent.counters[TRANSITIONS], ended)
    update = update or sample
    if update or is_full(agent.buffer):
        absorb(agent.posterior, agent.buffer, agent.discount)
    if ended:
        _end_episode(agent)
    if sample:
        draw_perturbation(agent.perturbation, _sampling_std(agent), rng)
    if update:
        improve(agent.posterior, agent.perturbation, agent.mean, agent.sampled)  # lines 10-12
        agent.counters[IMPROVEMENTS] += 1


@jit_borrowing
def _next_action(agent: State, y: Vector, allowed: Allowed) -> int:
    """What the policy under evaluation does next: the mean's greedy action.

    A share of the transitions is evaluated with the exploring policy instead.
    """
    t = agent.counters[TRANSITIONS]
    if math.floor((t + 1) * agent.on_policy) > math.floor(t * agent.on_policy):
        return greedy(agent.sampled, y, allowed)
    return greedy(agent.mean, y, allowed)


@jit_borrowing
def _centred(agent: State, reward: float, terminal: bool) -> float:
    """The reward less what the centre explains of it; now and then, the centre is moved."""
    if len(agent.constant) == 0:
        return reward
    unknown = agent.centre[TOLD] == 0.0
    if count_reward(agent.centre, reward, terminal):
        factor, shift = 1.0, move_centre(agent.centre, agent.discount)
        if unknown and agent.centre[TOLD]:  # until now, rewards were -1 unit
            known = shaped(agent.centre, agent.centre[FIRST], False)
            factor, shift = -known / unit(agent.centre), 0.0
            _forget_units(agent)
        absorb(agent.posterior, agent.buffer, agent.discount)
        change_rewards(agent.posterior, factor, agent.constant, shift)
        if agent.counters[IMPROVEMENTS] > 0:  # before, the weights are random
            for i in range(len(agent.constant)):
                agent.mean[i] = factor * agent.mean[i] - shift * agent.constant[i]
                agent.sampled[i] = factor * agent.sampled[i] - shift * agent.constant[i]
    return shaped(agent.centre, reward, terminal)


@jit_borrowing
def _forget_units(agent: State) -> None:
    """Forget the scale of the rewards as long as all were the same."""
    std = _sampling_std(agent)
    for i in range(len(agent.perturbation)):
        agent.perturbation[i] /= std
    for i in range(len(agent.noise_scale)):
        agent.noise_scale[i] = 0.0


@jit_borrowing
def _td_error(
    agent: State, x: Vector, action: int, reward: float, y: Vector, next_action: int
) -> float:
    """Delta = r + gamma y'm_a' - x'm_a, before the transition is learnt from.

    Before the first improvement the weights are random, and delta = r.
    """
    n, mean, delta = len(x), agent.mean, reward
    if agent.counters[IMPROVEMENTS] > 0:
        delta -= dot(mean[action * n : (action + 1) * n], x)
        if next_action >= 0:
            delta += agent.discount * dot(mean[next_action * n : (next_action + 1) * n], y)
    return delta


@jit_borrowing
def _track_noise(agent: State, td_error: float, reward: float) -> None:
    """Before the first TD error there are no units; the perturbation takes them on with it."""
    unknown = agent.noise_scale[MEAN_TD_ERROR] == 0.0
    update_noise_scale(agent.noise_scale, td_error, reward)
    if unknown:
        std = _sampling_std(agent)
        for i in range(len(agent.perturbation)):
            agent.perturbation[i] *= std


@jit_borrowing
def _end_episode(agent: State) -> None:
    """Count the episode, and discount the past: in episode J, the j-th weighs (j / J)^forgetting.

    Otherwise all that a bad policy met, often in its longest episodes, would weigh for ever. J
    episodes always weigh as much as J / (1 + forgetting) fresh ones.
    """
    agent.counters[EPISODES] += 1
    coming, weighted = agent.counters[EPISODES] + 1, max(agent.counters[WEIGHTED_EPISODE], 1)
    if agent.forgetting > 0.0 and coming >= FORGETTING_STEP * weighted:
        absorb(agent.posterior, agent.buffer, agent.discount)
        forget(agent.posterior, (weighted / coming) ** agent.forgetting)
        agent.counters[WEIGHTED_EPISODE] = coming


@jit_borrowing
def _sampling_std(agent: State) -> float:
    if agent.noise_std > 0.0:
        return agent.noise_std
    return sampling_std(agent.noise_scale, agent.discount, agent.counters[EPISODES])


def _new_state(
    actions: int,
    features: int,
    period: int,
    ridge: float,
    penalty: float,
    noise_std: float,
    discount: float,
    settings: Defaults,
    limit_ends: bool = False,
    constant: Vector | None = None,
) -> State:
    k, capacity = actions * features, min(period, CAPACITY)
    return State(
        buffer=new_buffer(capacity, features),
        mean=np.zeros(k),
        sampled=np.zeros(k),
        perturbation=np.zeros(k),
        counters=np.zeros(4, np.int64),
        noise_scale=new_noise_scale(),
        centre=new_centre(),
        constant=np.zeros(0) if constant is None else np.tile(constant, actions),
        discount=discount,
        noise_std=noise_std,
        update_every=settings.update_every,
        sample_every=settings.sample_every,
        on_policy=settings.on_policy,
        forgetting=settings.forgetting,
        limit_ends=limit_ends,
        posterior=new_incremental_posterior(
            actions, features, ridge, penalty, capacity, fastest_method(period, k)
        ),
    )


def _precisions(
    prior: float | None, noise: float | None
) -> tuple[float, float] | tuple[None, None]:
    if prior is None and noise is None:
        return None, None
    alpha = None if prior is None else check.positive("prior_precision", prior)
    beta = None if noise is None else check.positive("noise_precision", noise)
    if alpha is None or beta is None:
        raise ValueError(
            f"prior_precision={prior} and noise_precision={noise}: give both, or neither to have "
            "them follow from the data"
        )
    return alpha, beta


def _first_update(given: int | None, update_every: int) -> int | None:
    if given is None:
        return None
    if check.count("first_update", given) > update_every:
        period = f"update_every={update_every}" if update_every else 'update_every="episode"'
        raise ValueError(f"first_update={given} is later than {period} allows")
    return given


class RBLSPI(Agent):
    """Learns online by sampling value functions from a Bayesian least-squares posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete actions, a vector of them, or the id of one.
    basis : Basis, callable or fitted transformer, optional
        State features; one block of weights per action is learnt over them. Chosen by the
        observation space unless given; dimensions without bounds are then scaled to what
        1,000 random steps come across.
    prior_precision, noise_precision : float, optional
        alpha and beta: weights are N(0, I / alpha) before anything is seen, and beta is the
        precision of the noise in the empirical Bellman operator. With both, the other
        settings default to the paper's Algorithm 1; with neither, they follow from the data,
        see Notes, and the others default to what learns reliably.
    update_every : int or "episode", optional
        K: transitions between improvements of the policy. 20 as in the paper, 5 untuned.
    sample_every : int or "episode", optional
        Transitions between samples of a value function. In the paper, and where only K is
        given, as often as the policy improves; 20 untuned. Between two samples the weights
        follow the posterior with the same standard normal draw. A sample implies an
        improvement, because it is drawn around the current mean.
    on_policy : float, optional
        Share of the transitions that are evaluated with the next action of the exploring
        policy, rather than with the mean's greedy one. 0 as in the paper, 1/3 untuned.
    forgetting : float, optional
        In episode J, transitions of the j-th one weigh (j / J)^forgetting, to within 2%. 0 as
        in the paper, 1/2 untuned. Where no episode ever ends, nothing is forgotten.
    first_update : int, optional
        Transitions before the first improvement; K unless given. Algorithm 1 counts from t = 0
        and improves when t is a multiple of K, which to the letter is 1.
    limit_ends : bool
        Whether a truncated episode counts as a terminated one, without a future.
    discount : float
        gamma.
    ridge : float
        Every C_a starts at this multiple of the identity: C has to have an inverse.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.

    Notes
    -----
    Without alpha and beta the noise follows from the TD errors delta: beta = 0.05 / sigma^2,
    where sigma is the standard deviation of a normal distribution with the mean |delta| of the
    latest transitions, and alpha = lambda beta. Samples of value functions are as wide as the
    posterior at first and narrow as episodes pass, but stay above a falling fraction of the size
    of action values, see `rblspi.online.noise_scale`. The constants are the same for every
    environment, and rewards in other units change nothing but the units of the values.

    The prior is then centred on the value of going on as so far, see `rblspi.online.centre`, if
    the features have weights of a constant. A constant c added to all rewards of a problem that
    goes on for ever shifts values by c / (1 - gamma) and changes no action.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    functions = AgentFunctions(
        act, observe, numba.typeof(_new_state(1, 1, 1, 1.0, 1.0, 0.0, 0.0, PAPER))
    )
    state: State

    def __init__(
        self,
        env: EnvironmentLike,
        basis: BasisLike | None = None,
        *,
        prior_precision: float | None = None,
        noise_precision: float | None = None,
        update_every: int | Literal["episode"] | None = None,
        sample_every: int | Literal["episode"] | None = None,
        on_policy: float | None = None,
        forgetting: float | None = None,
        first_update: int | None = None,
        limit_ends: bool = False,
        discount: float = 0.99,
        ridge: float = 1e-6,
        seed: int | None = None,
    ) -> None:
        precisions = _precisions(prior_precision, noise_precision)
        self.prior_precision: float | None = precisions[0]
        self.noise_precision: float | None = precisions[1]
        default = UNTUNED if self.noise_precision is None else PAPER
        if sample_every is None:
            sample_every = default.sample_every if update_every is None else update_every
        if update_every is None:
            update_every = default.update_every
        self.update_every = check.period("update_every", update_every)
        self.sample_every = check.period("sample_every", sample_every)
        self.on_policy = check.fraction(
            "on_policy", default.on_policy if on_policy is None else on_policy
        )
        self.forgetting = check.not_negative(
            "forgetting", default.forgetting if forgetting is None else forgetting
        )
        self.first_update = _first_update(first_update, self.update_every)
        self.limit_ends = check.boolean("limit_ends", limit_ends)
        self.ridge = check.positive("ridge", ridge)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _initial_state(self) -> State:
        penalty, std = PENALTY, 0.0
        if self.prior_precision is not None and self.noise_precision is not None:
            penalty = self.prior_precision / self.noise_precision
            std = self.noise_precision**-0.5
        state = _new_state(
            self.actions,
            self.features.size,
            min((p for p in (self.update_every, self.sample_every) if p > 0), default=EPISODE),
            self.ridge,
            penalty,
            std,
            self.discount,
            Defaults(self.update_every, self.sample_every, self.on_policy, self.forgetting),
            self.limit_ends,
            self.features.constant if std == 0.0 else None,
        )
        if self.first_update is not None:
            state.counters[TRANSITIONS] = self.update_every - self.first_update
        state.mean[:] = self.rng.standard_normal(len(state.mean))  # line 1: m ~ N(0, I)
        state.sampled[:] = state.mean
        return state

    @property
    def posterior(self) -> Posterior:
        """The Gaussian over weights, given all transitions absorbed so far.

        It may include transitions that the weights the agent acts by do not reflect yet: where
        improvements are more than 64 transitions apart, and after an episode at whose end the
        past was discounted.
        """
        with self._lock:
            incremental = self.state.posterior
            noise_precision = (self.state.noise_std or noise_std(self.state.noise_scale)) ** -2.0
            return Posterior.from_incremental(
                incremental,
                incremental.penalty * noise_precision,
                noise_precision,
                self._prior_mean(),
            )

    def _prior_mean(self) -> Vector | None:
        centre: Vector = self.state.centre[VALUE] * self.state.constant
        return centre if len(centre) else None

    def _weights(self, explore: bool) -> Vector:
        weights, centre = self.state.sampled if explore else self.state.mean, self._prior_mean()
        return weights if centre is None else weights + centre

    def diagnostics(self) -> dict[str, float]:
        """How far the sampled weights are from their mean, relative to the mean."""
        mean = self.state.mean
        distance = np.linalg.norm(self.state.sampled - mean)
        return {"relative_std": float(distance / max(float(np.linalg.norm(mean)), 1e-300))}

    def _warn(self) -> None:
        self.posterior.warn_if_uncertain()
