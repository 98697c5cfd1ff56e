"""A policy that was fitted to logged data, as an agent: it acts, and does not learn.

Greedy in the weights, or with pessimism c in the mean minus c standard deviations.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, NoReturn, Self

import gymnasium as gym
import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi import check
from rblspi.agents.base import Agent
from rblspi.compiled import jit
from rblspi.datasets import logged  # noqa: F401  registers the environment of mere logs
from rblspi.features import BasisLike
from rblspi.interaction import AgentFunctions
from rblspi.linear_algebra import dot
from rblspi.posterior import Posterior
from rblspi.statistics import Statistics, empty

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class State(NamedTuple):
    """What was fitted."""

    statistics: Statistics
    weights: Vector  # (k,)
    covariances: NDArray[np.float64]  # c^2 S_aa; empty without pessimism  (actions, n, n)


@jit
def act(agent: State, x: Vector, rng: Any) -> int:
    """argmax_a x'm_a - (x' c^2 S_aa x)^1/2; ties go to the first action."""
    n = len(x)
    best, highest = 0, -np.inf
    for a in range(len(agent.weights) // n):
        value = dot(agent.weights[a * n : (a + 1) * n], x)
        if len(agent.covariances) > 0:
            value -= np.sqrt(max(_quadratic(agent.covariances[a], x), 0.0))
        if value > highest:
            best, highest = a, value
    return best


@jit
def _quadratic(matrix: Matrix, x: Vector) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * dot(matrix[i], x)
    return total


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
    """Learn nothing."""


FUNCTIONS = AgentFunctions(
    act, observe, numba.typeof(State(empty(1, 1), np.zeros(1), np.zeros((0, 1, 1))))
)


class FittedPolicy(Agent):
    """The policy of an estimator, for an environment.

    Made by `from_fit`; the constructor gives one that knows nothing.

    Parameters
    ----------
    env : gymnasium.Env or str
    basis : Basis, callable or fitted transformer
    algorithm : str
        What it was fitted by.
    discount : float
    prior_precision, noise_precision : float, optional
        alpha and beta; None where there is no posterior.
    pessimism : float
        Standard deviations that an action has to give for being uncertain.
    ridge : float
    seed : int, optional
    """

    functions = FUNCTIONS
    state: State

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike,
        *,
        algorithm: str = "lspi",
        discount: float = 0.99,
        prior_precision: float | None = None,
        noise_precision: float | None = None,
        pessimism: float = 0.0,
        ridge: float = 1e-6,
        seed: int | None = 0,
    ) -> None:
        if (prior_precision is None) != (noise_precision is None):
            raise ValueError("prior_precision and noise_precision go together: give both or none")
        if pessimism and prior_precision is None:
            raise ValueError(f"pessimism={pessimism} needs a posterior: give prior_precision")
        self.algorithm = str(algorithm)
        self.prior_precision = prior_precision and check.positive(
            "prior_precision", prior_precision
        )
        self.noise_precision = noise_precision and check.positive(
            "noise_precision", noise_precision
        )
        self.pessimism = pessimism and check.positive("pessimism", pessimism)
        self.ridge = ridge and check.positive("ridge", ridge)
        super().__init__(env, basis, discount=discount, seed=seed)

    @classmethod
    def from_fit(
        cls,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike,
        statistics: Statistics,
        weights: ArrayLike,
        **settings: Any,
    ) -> Self:
        """The policy that some sums and weights stand for.

        Parameters
        ----------
        env : gymnasium.Env or str
            Where it is going to act; the basis is built for its observations.
        basis : Basis, callable or fitted transformer
        statistics : Statistics
            The sums of the policy evaluated last: the posterior follows from them.
        weights : array-like, shape (k,)
        **settings
            Arguments of the constructor.
        """
        agent = cls(env, basis, **settings)
        if agent.state.statistics.gram.shape != statistics.gram.shape:
            raise ValueError(
                f"{statistics.actions} actions x {statistics.features} features were fitted, but "
                f"{agent.env} has {agent.actions} x {agent.features.size}"
            )
        for own, fitted in zip(agent.state.statistics, statistics, strict=True):
            own[...] = fitted
        agent.state.weights[:] = weights
        agent.num_timesteps = int(statistics.count.sum())
        agent._settle()
        return agent

    def _initial_state(self) -> State:
        n = self.features.size
        blocks = self.actions if self.pessimism else 0
        return State(empty(self.actions, n), np.zeros(self.actions * n), np.zeros((blocks, n, n)))

    def _settle(self) -> None:
        """Work out what the policy needs of the posterior."""
        if self.pessimism and self.posterior is not None:
            n = self.features.size
            blocks = self.posterior.covariance().reshape(self.actions, n, self.actions, n)
            for a in range(self.actions):
                self.state.covariances[a] = self.pessimism**2 * blocks[a, :, a]

    @cached_property
    def _posterior(self) -> Posterior | None:
        if self.prior_precision is None or self.noise_precision is None:
            return None
        return Posterior.from_statistics(
            self.state.statistics, self.prior_precision, self.noise_precision, self.ridge
        )

    @property
    def posterior(self) -> Posterior | None:
        """The Gaussian over weights; None where the algorithm has none."""
        return self._posterior

    def learn(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: it was fitted to logs."""
        raise TypeError(
            f"a policy fitted by {self.algorithm} does not learn online: fit again with more data"
        )

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Actions for an observation or a batch of them; there is nothing random about them."""
        return super().predict(observation, state, episode_start, deterministic=False)

    def _mean_weights(self) -> Vector:
        return self.state.weights

    def _exploring_actions(self, x: Matrix) -> NDArray[np.int64]:
        values = self._values(x)
        std = self._std(x) if self.pessimism else None
        if std is not None:
            values = values - self.pessimism * std
        chosen: NDArray[np.int64] = np.argmax(values, axis=1)
        return chosen
