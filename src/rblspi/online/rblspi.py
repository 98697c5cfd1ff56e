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

from typing import Any, NamedTuple

import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.settings import Setting
from rblspi.core.types import Allowed, Integers, Vector
from rblspi.features import BasisLike
from rblspi.model.buffer import CAPACITY, TERMINAL, Buffer, append, is_full, new_buffer
from rblspi.model.incremental import (
    IncrementalPosterior,
    absorb,
    draw_perturbation,
    fastest_method,
    improve,
    new_incremental_posterior,
)
from rblspi.model.posterior import Posterior
from rblspi.online.agent import Agent
from rblspi.policies.choice import greedy
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition, is_due, is_terminal

#: transitions that an episode is assumed to have, where it is the period
EPISODE = 100
#: alpha and beta, in units of the largest reward: among those that the paper tries on the mountain
#: car, the pendulum and the cart pole, whose rewards are of size 1 (as are those of the
#: sparse car, where its betas are 100 and 1000)
PRIOR_PRECISION, NOISE_PRECISION = 0.01, 1.0

#: places in `State.counters`
TRANSITIONS, IMPROVEMENTS = range(2)


class State(NamedTuple):
    """What the algorithm carries from step to step."""

    buffer: Buffer  # transitions that the posterior has not absorbed yet
    mean: Vector  # m                                        (k,)
    sampled: Vector  # theta, the sampled weights            (k,)
    counters: Integers  # see above                          (2,)
    largest_reward: Vector  # |r|                            (1,)
    discount: float
    noise_std: float  # beta^-1/2
    in_reward_units: bool  # whether that is in units of the largest reward
    update_every: int  # K; 0: the end of the episode
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
    terminal = is_terminal(transition, agent.limit_ends)
    next_action = TERMINAL if terminal else greedy(agent.mean, y, next_allowed)
    append(agent.buffer, x, action, reward, y, next_action)  # lines 6-8
    agent.counters[TRANSITIONS] += 1
    agent.largest_reward[0] = max(agent.largest_reward[0], abs(reward))
    due = is_due(transition, agent.update_every, agent.counters[TRANSITIONS])
    if due or is_full(agent.buffer):
        absorb(agent.posterior, agent.buffer, agent.discount)
    if due:  # line 9
        draw_perturbation(agent.sampled, _noise_std(agent), rng)
        improve(agent.posterior, agent.mean, agent.sampled)  # lines 10-12
        agent.counters[IMPROVEMENTS] += 1


@jit_borrowing
def _noise_std(agent: State) -> float:
    """beta^-1/2; as long as all rewards are zero so are all values, and any unit will do.

    The unit is kept in a range whose squares neither overflow nor underflow.
    """
    if agent.in_reward_units and agent.largest_reward[0] > 0.0:
        return agent.noise_std * float(min(max(agent.largest_reward[0], 1e-100), 1e100))
    return agent.noise_std


class RBLSPI(Agent):
    """Learns online by sampling value functions from a Bayesian least-squares posterior.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, a vector of them, or the id of one.
    basis : Basis, callable or fitted transformer, optional
        State features; one block of weights per action is learnt over them. Chosen by the
        observation space unless given; dimensions without bounds are then scaled to what
        1,000 random steps come across.
    prior_precision, noise_precision : float, optional
        alpha and beta: weights are N(0, I / alpha) before anything is seen, and beta is the
        precision of the noise in the empirical Bellman operator. Unless given they are 0.01 and 1
        in units of the largest reward R so far, that is 0.01 / R^2 and 1 / R^2. They are among
        the paper's settings of the mountain car, the pendulum and the cart pole, whose rewards are
        of size 1; for the sparse car the paper has a beta of 100 or 1000.
    update_every : int or "episode"
        K: transitions between improvements of the policy, at which a value function is sampled.
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
    Without alpha and beta, rewards in other units change the units of values, and nothing else:
    their ratio, on which the mean depends, has no unit.

    This is the paper's algorithm, for comparisons and for lessons. The agents that
    `rblspi.agent` chooses explore further and need fewer steps.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    functions = AgentFunctions(act, observe)
    state: State

    prior_precision = Setting[float | None](None, check.positive)
    noise_precision = Setting[float | None](None, check.positive)
    update_every = Setting(20, check.period)
    first_update = Setting[int | None](None, check.count)
    limit_ends = Setting(False, check.boolean)
    ridge = Setting(1e-6, check.positive)

    def _recipe(self, given: BasisLike | None) -> BasisLike | None:
        if (self.prior_precision is None) != (self.noise_precision is None):
            raise ValueError(
                f"prior_precision={self.prior_precision} and noise_precision="
                f"{self.noise_precision}: give both, or neither for the paper's in units of the "
                "rewards"
            )
        if (self.first_update or 0) > self.update_every:
            period = self.update_every or '"episode"'
            raise ValueError(
                f"first_update={self.first_update} is later than update_every={period} allows"
            )
        return given

    def _initial_state(self) -> State:
        n, period = self.features.size, self.update_every or EPISODE
        k, capacity = self.actions * n, min(period, CAPACITY)
        alpha = self.prior_precision or PRIOR_PRECISION
        beta = self.noise_precision or NOISE_PRECISION
        method = fastest_method(period, k)
        mean = self.rng.standard_normal(k)  # line 1: m ~ N(0, I)
        counters = np.zeros(2, np.int64)
        if self.first_update is not None:
            counters[TRANSITIONS] = self.update_every - self.first_update
        return State(
            buffer=new_buffer(capacity, n),
            mean=mean,
            sampled=mean.copy(),
            counters=counters,
            largest_reward=np.zeros(1),
            discount=self.discount,
            noise_std=beta**-0.5,
            in_reward_units=self.noise_precision is None,
            update_every=self.update_every,
            limit_ends=self.limit_ends,
            posterior=new_incremental_posterior(
                self.actions, n, self.ridge, alpha / beta, capacity, method
            ),
        )

    @property
    def posterior(self) -> Posterior:
        """The Gaussian over weights, given all transitions absorbed so far.

        It may include transitions that the weights the agent acts by do not reflect yet, where
        improvements are more than 64 transitions apart.
        """
        with self._lock:
            beta = _noise_std(self.state) ** -2.0
            return Posterior.from_incremental(self.state.posterior, beta)

    def _weights(self, explore: bool) -> Vector:
        return self.state.sampled if explore else self.state.mean

    def diagnostics(self) -> dict[str, float]:
        """How far the sampled weights are from their mean, relative to the mean."""
        mean = self.state.mean
        distance = np.linalg.norm(self.state.sampled - mean)
        return {"relative_std": float(distance / max(float(np.linalg.norm(mean)), 1e-300))}

    def _warn(self) -> None:
        self.posterior.warn_if_uncertain()
