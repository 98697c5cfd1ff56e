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

import gymnasium as gym
import numba
import numpy as np
from numpy.typing import NDArray

from rblspi import check
from rblspi.agents.base import Agent
from rblspi.agents.schedule import is_due
from rblspi.agents.surprise import MEAN, exploring_spread, new_surprise, noise, note
from rblspi.belief import (
    BLOCK,
    Belief,
    absorb,
    draw_direction,
    fade,
    improve,
    new_belief,
    shortest_route,
)
from rblspi.compiled import jit_borrowing, jit_inlined
from rblspi.features import BasisLike
from rblspi.interaction import AgentFunctions
from rblspi.linear_algebra import dot
from rblspi.policies import greedy
from rblspi.posterior import Posterior
from rblspi.recent import Recent, is_full, new_recent, remember

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: transitions that an episode is taken to have, where it is the period
EPISODE = 100
#: lambda = alpha / beta, where the user gives neither
PENALTY = 0.003
#: growth in the number of episodes after which the past fades another time
FADING_STEP = 1.02


class Choices(NamedTuple):
    """Settings that the user may leave open."""

    update_every: int
    sample_every: int
    on_policy: float
    fading: float


#: the paper's Algorithm 1, where alpha and beta are given
PAPER = Choices(update_every=20, sample_every=20, on_policy=0.0, fading=0.0)
#: what learns reliably, where they follow from the data
UNTUNED = Choices(update_every=5, sample_every=20, on_policy=1 / 3, fading=0.5)

#: places in the clock
TRANSITIONS, IMPROVEMENTS, EPISODES, WEIGHED = range(4)


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    recent: Recent  # transitions that the belief does not hold yet
    mean: Vector  # m                                      (k,)
    sampled: Vector  # theta, the sampled weights          (k,)
    direction: Vector  # the spread times z, kept between samples (k,)
    clock: NDArray[np.int64]  # transitions, improvements, episodes, which one weighs 1 (4,)
    surprise: Vector  # see `surprise`                     (4,)
    discount: float
    spread: float  # beta^-1/2; 0: follows from the surprise
    update_every: int  # K; 0: the end of the episode
    sample_every: int
    on_policy: float
    fading: float
    belief: Belief


@jit_inlined
def act(agent: State, x: Vector, rng: Any) -> int:
    """Greedy in the sampled value function."""
    return greedy(agent.sampled, x)  # line 4


@jit_inlined
def observe(
    agent: State,
    x: Vector,
    action: int,
    reward: float,
    y: Vector,
    terminated: bool,
    ended: bool,
    rng: Any,
) -> None:
    """Take in a transition; every K of them, improve the policy and sample a value function."""
    next_action = -1 if terminated else _next_action(agent, y)
    remember(agent.recent, x, action, reward, y, next_action)  # lines 6-8
    agent.clock[TRANSITIONS] += 1
    if agent.spread == 0.0:
        _note_surprise(agent, _difference(agent, x, action, reward, y, next_action), reward)
    update = is_due(agent.update_every, agent.clock[TRANSITIONS], ended)  # line 9
    first = update and agent.clock[IMPROVEMENTS] == 0  # no draw yet that weights could follow
    sample = first or is_due(agent.sample_every, agent.clock[TRANSITIONS], ended)
    update = update or sample
    if update or is_full(agent.recent):
        absorb(agent.belief, agent.recent, agent.discount)
    if ended:
        _end_episode(agent)
    if sample:
        draw_direction(agent.direction, _spread(agent), rng)
    if update:
        improve(agent.belief, agent.direction, agent.mean, agent.sampled)  # lines 10-12
        agent.clock[IMPROVEMENTS] += 1


@jit_borrowing
def _next_action(agent: State, y: Vector) -> int:
    """What the policy under evaluation does next: the mean's greedy one.

    A share of the transitions is evaluated with the policy that explores instead.
    """
    t = agent.clock[TRANSITIONS]
    if math.floor((t + 1) * agent.on_policy) > math.floor(t * agent.on_policy):
        return greedy(agent.sampled, y)
    return greedy(agent.mean, y)


@jit_borrowing
def _difference(
    agent: State, x: Vector, action: int, reward: float, y: Vector, next_action: int
) -> float:
    """Delta = r + gamma y'm_a' - x'm_a, before the transition is learnt from.

    Before the first improvement the weights are random and nothing is expected: delta = r.
    """
    n, mean, delta = len(x), agent.mean, reward
    if agent.clock[IMPROVEMENTS] > 0:
        delta -= dot(mean[action * n : (action + 1) * n], x)
        if next_action >= 0:
            delta += agent.discount * dot(mean[next_action * n : (next_action + 1) * n], y)
    return delta


@jit_borrowing
def _note_surprise(agent: State, delta: float, reward: float) -> None:
    """Before the first surprise there are no units: what was drawn takes them on with it."""
    calm = agent.surprise[MEAN] == 0.0
    note(agent.surprise, delta, reward)
    if calm:
        spread = _spread(agent)
        for i in range(len(agent.direction)):
            agent.direction[i] *= spread


@jit_borrowing
def _end_episode(agent: State) -> None:
    """Count it, and let the past fade: in episode J, the j-th one counts (j / J)^fading.

    All that a bad policy met, often in its longest episodes, would be remembered for ever
    otherwise. Fading has an end: J episodes always count like J / (1 + fading) fresh ones.
    """
    agent.clock[EPISODES] += 1
    coming, weighed = agent.clock[EPISODES] + 1, max(agent.clock[WEIGHED], 1)
    if agent.fading > 0.0 and coming >= FADING_STEP * weighed:
        absorb(agent.belief, agent.recent, agent.discount)
        fade(agent.belief, (weighed / coming) ** agent.fading)
        agent.clock[WEIGHED] = coming


@jit_borrowing
def _spread(agent: State) -> float:
    if agent.spread > 0.0:
        return agent.spread
    return exploring_spread(agent.surprise, agent.discount, agent.clock[EPISODES])


def _new_state(
    actions: int,
    features: int,
    period: int,
    ridge: float,
    penalty: float,
    spread: float,
    discount: float,
    choices: Choices,
) -> State:
    k = actions * features
    return State(
        recent=new_recent(min(period, BLOCK), features),
        mean=np.zeros(k),
        sampled=np.zeros(k),
        direction=np.zeros(k),
        clock=np.zeros(4, np.int64),
        surprise=new_surprise(),
        discount=discount,
        spread=spread,
        update_every=choices.update_every,
        sample_every=choices.sample_every,
        on_policy=choices.on_policy,
        fading=choices.fading,
        belief=new_belief(
            actions,
            features,
            ridge,
            penalty,
            min(period, BLOCK),
            route=shortest_route(period, k),
        ),
    )


FUNCTIONS = AgentFunctions(
    act,
    observe,
    numba.typeof(_new_state(1, 1, 1, 1.0, 1.0, 0.0, 0.0, PAPER)),
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


class RBLSPI(Agent):
    """Learns online by sampling value functions from a Bayesian least-squares posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete actions, or the id of one.
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
        Transitions between samples of a value function. As often as the policy improves in
        the paper, or where only K is given; 20 untuned. Between two samples the weights
        follow the posterior along the same standard normal draw. A sample is drawn around
        the mean as it then is, so a sample implies an improvement.
    on_policy : float, optional
        Share of the transitions that are evaluated with the next action of the policy that
        explores, rather than the mean's greedy one. 0 as in the paper, 1/3 untuned.
    fading : float, optional
        In episode J, transitions of the j-th one count (j / J)^fading, to within 2%. 0 as in
        the paper, 1/2 untuned. Where no episode ever ends, nothing fades.
    discount : float
        gamma.
    ridge : float
        Every C_a starts at this multiple of the identity: C has to have an inverse.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.

    Notes
    -----
    Without alpha and beta the noise is taken for what it models, the differences delta between
    what was expected of a transition and what came: beta = 0.05 / sigma^2, where sigma is the
    standard deviation of a normal distribution with the mean |delta| of the latest
    transitions, and alpha = lambda beta. Value functions are sampled with the posterior's
    spread at first and more and more narrowly as episodes pass, but never more narrowly than a
    falling fraction of what values can be, see `rblspi.agents.surprise`. The constants are the
    same for every environment, and rewards in other units change nothing but the units of the
    values.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    functions = FUNCTIONS
    state: State

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None = None,
        *,
        prior_precision: float | None = None,
        noise_precision: float | None = None,
        update_every: int | Literal["episode"] | None = None,
        sample_every: int | Literal["episode"] | None = None,
        on_policy: float | None = None,
        fading: float | None = None,
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
        self.fading = check.not_negative("fading", default.fading if fading is None else fading)
        self.ridge = check.positive("ridge", ridge)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _initial_state(self) -> State:
        penalty, spread = PENALTY, 0.0
        if self.prior_precision is not None and self.noise_precision is not None:
            penalty = self.prior_precision / self.noise_precision
            spread = self.noise_precision**-0.5
        state = _new_state(
            self.actions,
            self.features.size,
            min((p for p in (self.update_every, self.sample_every) if p > 0), default=EPISODE),
            self.ridge,
            penalty,
            spread,
            self.discount,
            Choices(self.update_every, self.sample_every, self.on_policy, self.fading),
        )
        state.mean[:] = self.rng.standard_normal(len(state.mean))  # line 1: m ~ N(0, I)
        state.sampled[:] = state.mean
        return state

    @property
    def posterior(self) -> Posterior:
        """The Gaussian over weights, given all transitions absorbed so far.

        Between two improvements more than 64 transitions apart, and after an episode at whose
        end the past has faded, that is not quite what the weights the agent acts by know of.
        """
        noise_precision = (self.state.spread or noise(self.state.surprise)) ** -2.0
        return Posterior.from_belief(
            self.state.belief, self.state.belief.penalty * noise_precision, noise_precision
        )

    def _mean_weights(self) -> Vector:
        return self.state.mean

    def _exploring_actions(self, x: Matrix) -> NDArray[np.int64]:
        values = x @ self.state.sampled.reshape(self.actions, -1).T
        chosen: NDArray[np.int64] = np.argmax(values, axis=1)
        return chosen

    def _std(self, x: Matrix) -> Matrix:
        return self.posterior.predict(x)[1]

    def diagnostics(self) -> dict[str, float]:
        """How far the sampled weights are from their mean, relative to the mean."""
        mean = self.state.mean
        distance = np.linalg.norm(self.state.sampled - mean)
        return {"spread": float(distance / max(float(np.linalg.norm(mean)), 1e-300))}

    def _raise_concerns(self) -> None:
        self.posterior.warn_if_uncertain()
