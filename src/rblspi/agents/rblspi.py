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
from rblspi.belief import (
    BLOCK,
    Belief,
    absorb,
    draw_direction,
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

#: lambda = alpha / beta, where the user gives neither
PENALTY = 0.003
#: c in beta = c / sigma^2, where the user gives neither
PRECISION = 0.5
#: the least beta^-1/2, in units of the size of action values
LEAST_SPREAD = 2000.0**-0.5
#: transitions that an episode is taken to have, where it is the period
EPISODE = 100
#: steps that a reward lasts at the most, for discounts near 1
HORIZON = 1000.0
#: sigma of a normal distribution whose mean absolute value is 1
SIGMA = math.sqrt(math.pi / 2.0)
#: transitions over which the mean of temporal differences fades
FADE = 1000.0


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    recent: Recent  # transitions that the belief does not hold yet
    mean: Vector  # m                                      (k,)
    sampled: Vector  # theta, the sampled weights          (k,)
    direction: Vector  # beta^-1/2 z, kept between samples (k,)
    clock: NDArray[np.int64]  # transitions; improvements  (2,)
    surprise: Vector  # mean |delta|; how many; mean |r|; largest |r| (4,)
    discount: float
    spread: float  # beta^-1/2; automatic: in units of sigma
    automatic: bool
    update_every: int  # K; 0: the end of the episode
    sample_every: int
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
    next_action = -1 if terminated else greedy(agent.mean, y)
    remember(agent.recent, x, action, reward, y, next_action)  # lines 6-8
    agent.clock[0] += 1
    if agent.automatic:
        _note_surprise(agent, x, action, reward, y, next_action)
    update = is_due(agent.update_every, agent.clock[0], ended)  # line 9
    first = update and agent.clock[1] == 0  # nothing was drawn yet that weights could follow
    sample = first or is_due(agent.sample_every, agent.clock[0], ended)
    update = update or sample
    if update or is_full(agent.recent):
        absorb(agent.belief, agent.recent, agent.discount)
    if sample:
        draw_direction(agent.direction, _spread(agent), rng)
    if update:
        improve(agent.belief, agent.direction, agent.mean, agent.sampled)  # lines 10-12
        agent.clock[1] += 1


@jit_borrowing
def _note_surprise(
    agent: State, x: Vector, action: int, reward: float, y: Vector, next_action: int
) -> None:
    """Average |delta|, delta = r + gamma y'm_a' - x'm_a, before the transition is learnt from.

    The average fades over `FADE` transitions: what a bad policy met should not count for ever.
    Before the first improvement the weights are random and nothing is expected: delta = r.
    """
    n, mean, delta = len(x), agent.mean, reward
    if agent.clock[1] > 0:
        delta -= dot(mean[action * n : (action + 1) * n], x)
        if next_action >= 0:
            delta += agent.discount * dot(mean[next_action * n : (next_action + 1) * n], y)
    agent.surprise[1] += 1.0
    rate = max(1.0 / agent.surprise[1], 1.0 / FADE)
    agent.surprise[0] += rate * (abs(delta) - agent.surprise[0])
    agent.surprise[2] += rate * (abs(reward) - agent.surprise[2])
    agent.surprise[3] = max(agent.surprise[3], abs(reward))


@jit_borrowing
def _spread(agent: State) -> float:
    """beta^-1/2: sigma / c^1/2, but not below what the size of the values demands.

    Values are of the size of the largest reward or of a lasting one, whichever is more. Where
    nothing was a surprise yet all values are zero, and any spread will do.
    """
    if not agent.automatic or agent.surprise[0] == 0.0:
        return agent.spread
    horizon = min(1.0 / max(1.0 - agent.discount, 1e-300), HORIZON)
    size = max(agent.surprise[3], horizon * agent.surprise[2])
    spread = max(agent.spread * SIGMA * agent.surprise[0], LEAST_SPREAD * size)
    if not spread > 1e-100:  # its square has to be a number
        return 1e-100
    return float(min(spread, 1e100))


def _new_state(
    actions: int,
    features: int,
    period: int,
    ridge: float,
    precisions: tuple[float, float],
    discount: float,
    automatic: bool,
    update_every: int,
    sample_every: int,
) -> State:
    k = actions * features
    alpha, beta = precisions
    return State(
        recent=new_recent(min(period, BLOCK), features),
        mean=np.zeros(k),
        sampled=np.zeros(k),
        direction=np.zeros(k),
        clock=np.zeros(2, np.int64),
        surprise=np.zeros(4),
        discount=discount,
        spread=beta**-0.5,
        automatic=automatic,
        update_every=update_every,
        sample_every=sample_every,
        belief=new_belief(
            actions,
            features,
            ridge,
            alpha / beta,
            min(period, BLOCK),
            route=shortest_route(period, k),
        ),
    )


FUNCTIONS = AgentFunctions(
    act,
    observe,
    numba.typeof(_new_state(1, 1, 1, 1.0, (1.0, 1.0), 0.0, False, 0, 0)),
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
        precision of the noise in the empirical Bellman operator. Unless both are given they
        follow from the data, see Notes.
    update_every : int or "episode"
        K: transitions between improvements of the policy.
    sample_every : int or "episode", optional
        Transitions between samples of a value function; K unless given. Between two samples
        the weights follow the posterior along the same standard normal draw. A sample is
        drawn from the posterior as it then is, so a sample implies an improvement.
    discount : float
        gamma.
    ridge : float
        Every C_a starts at this multiple of the identity: C has to have an inverse.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.

    Notes
    -----
    Without alpha and beta the noise is taken for what it models, the differences delta between
    what was expected of a transition and what came: beta = c / sigma^2, where sigma is the
    standard deviation of a normal distribution with the mean |delta| of the latest
    transitions; but at most 2000 / size^2, size being what action values can be by the rewards
    seen. alpha = lambda beta. The constants are the same for every environment, and rewards in
    other units change nothing but the units of the values.

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
        update_every: int | Literal["episode"] = 20,
        sample_every: int | Literal["episode"] | None = None,
        discount: float = 0.99,
        ridge: float = 1e-6,
        seed: int | None = None,
    ) -> None:
        precisions = _precisions(prior_precision, noise_precision)
        self.prior_precision: float | None = precisions[0]
        self.noise_precision: float | None = precisions[1]
        self.update_every = check.period("update_every", update_every)
        self.sample_every = check.period(
            "sample_every", update_every if sample_every is None else sample_every
        )
        self.ridge = check.positive("ridge", ridge)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _initial_state(self) -> State:
        state = _new_state(
            self.actions,
            self.features.size,
            min((p for p in (self.update_every, self.sample_every) if p > 0), default=EPISODE),
            self.ridge,
            self._initial_precisions(),
            self.discount,
            self.noise_precision is None,
            self.update_every,
            self.sample_every,
        )
        state.mean[:] = self.rng.standard_normal(len(state.mean))  # line 1: m ~ N(0, I)
        state.sampled[:] = state.mean
        return state

    @property
    def posterior(self) -> Posterior:
        """The Gaussian over weights, given all transitions absorbed so far.

        Between two improvements more than 64 transitions apart that may be more than the
        weights the agent acts by know of.
        """
        noise_precision = _spread(self.state) ** -2.0
        return Posterior.from_belief(
            self.state.belief, self.state.belief.penalty * noise_precision, noise_precision
        )

    def _initial_precisions(self) -> tuple[float, float]:
        if self.prior_precision is None or self.noise_precision is None:
            return PENALTY * PRECISION, PRECISION
        return self.prior_precision, self.noise_precision

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
