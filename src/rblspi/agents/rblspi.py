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
    exchange_is_cheaper,
    improve,
    new_belief,
)
from rblspi.compiled import jit
from rblspi.features import BasisLike
from rblspi.interaction import AgentFunctions
from rblspi.policies import greedy
from rblspi.posterior import Posterior
from rblspi.recent import is_full, remember

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    belief: Belief
    sampled: Vector  # theta, the sampled weights          (k,)
    direction: Vector  # beta^-1/2 z, kept between samples (k,)
    clock: NDArray[np.int64]  # transitions seen           (1,)
    discount: float
    spread: float  # beta^-1/2
    update_every: int  # K; 0: the end of the episode
    sample_every: int


@jit
def act(agent: State, x: Vector, rng: Any) -> int:
    """Greedy in the sampled value function."""
    return greedy(agent.sampled, x)  # line 4


@jit
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
    belief = agent.belief
    next_action = -1 if terminated else greedy(belief.mean, y)
    remember(belief.recent, x, action, reward, y, next_action)  # lines 6-8
    agent.clock[0] += 1
    sample = is_due(agent.sample_every, agent.clock[0], ended)
    update = sample or is_due(agent.update_every, agent.clock[0], ended)  # line 9
    if update or is_full(belief.recent):
        absorb(belief, agent.discount)
    if sample:
        draw_direction(agent.direction, agent.spread, rng)
    if update:
        improve(belief, agent.direction, agent.sampled)  # lines 10-12


FUNCTIONS = AgentFunctions(
    act,
    observe,
    numba.typeof(
        State(
            new_belief(1, 1, 1.0, 1.0, 1, False),
            np.zeros(1),
            np.zeros(1),
            np.zeros(1, np.int64),
            0.0,
            0.0,
            0,
            0,
        )
    ),
)


class RBLSPI(Agent):
    """Learns online by sampling value functions from a Bayesian least-squares posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment with discrete actions, or the id of one.
    basis : Basis, callable or fitted transformer
        State features; one block of weights per action is learnt over them.
    prior_precision : float
        alpha: weights are N(0, I / alpha) before anything is seen.
    noise_precision : float
        beta: the precision of the noise in the empirical Bellman operator.
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
        basis: BasisLike,
        *,
        prior_precision: float = 0.01,
        noise_precision: float = 1.0,
        update_every: int | Literal["episode"] = 20,
        sample_every: int | Literal["episode"] | None = None,
        discount: float = 0.99,
        ridge: float = 1e-6,
        seed: int | None = None,
    ) -> None:
        self.prior_precision = check.positive("prior_precision", prior_precision)
        self.noise_precision = check.positive("noise_precision", noise_precision)
        self.update_every = check.period("update_every", update_every)
        self.sample_every = check.period(
            "sample_every", update_every if sample_every is None else sample_every
        )
        self.ridge = check.positive("ridge", ridge)
        super().__init__(env, basis, discount=discount, seed=seed)

    def _initial_state(self) -> State:
        k = self.actions * self.features.size
        weights = self.rng.standard_normal(k)  # line 1: m ~ N(0, I), theta = m
        period = min(p for p in (self.update_every, self.sample_every, BLOCK) if p > 0)
        belief = new_belief(
            self.actions,
            self.features.size,
            self.ridge,
            self.prior_precision / self.noise_precision,
            capacity=period,
            exchange=exchange_is_cheaper(period, k),
        )
        belief.mean[:] = weights
        return State(
            belief,
            weights.copy(),
            np.zeros(k),
            np.zeros(1, np.int64),
            self.discount,
            self.noise_precision**-0.5,
            self.update_every,
            self.sample_every,
        )

    @property
    def posterior(self) -> Posterior:
        """The Gaussian over weights as of the last improvement."""
        return Posterior.from_belief(
            self.state.belief, self.prior_precision, self.noise_precision
        )

    def _mean_weights(self) -> Vector:
        return self.state.belief.mean

    def _exploring_actions(self, x: Matrix) -> NDArray[np.int64]:
        return np.argmax(x @ self.state.sampled.reshape(self.actions, -1).T, axis=1)

    def _std(self, x: Matrix) -> Matrix:
        return self.posterior.predict(x)[1]

    def _news(self) -> str:
        spread = np.linalg.norm(self.state.sampled - self.state.belief.mean)
        return f"spread {spread / max(np.linalg.norm(self.state.belief.mean), 1e-300):.2g}"
