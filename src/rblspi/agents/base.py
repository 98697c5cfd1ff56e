"""What all online agents share: an environment, a basis, and Stable-Baselines3's shape."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from rblspi import check
from rblspi.agents import storage
from rblspi.agents.progress import Progress, no_progress, progress_on_terminal
from rblspi.environments.find import make
from rblspi.features import BasisLike, as_basis
from rblspi.interaction import AgentFunctions, Session

Array = NDArray[np.float64]
Callback = Callable[["Agent"], bool | None]

#: seconds of learning between two looks at the clock, the progress bar and Ctrl-C
PAUSE = 0.1


class ActionValues(NamedTuple):
    """Values of every action in one state, shape (actions,), or in a batch, (N, actions)."""

    mean: Array
    std: Array | None  # None: the algorithm does not say how sure it is


class Agent(ABC):
    """An agent that learns online from any Gymnasium environment with discrete actions.

    A subclass is one algorithm: compiled `functions`, the `_initial_state` they work on, and
    what it knows of action values. Its constructor's arguments are its settings.
    """

    functions: ClassVar[AgentFunctions]

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike,
        *,
        discount: float,
        seed: int | None,
    ) -> None:
        self.discount = check.fraction("discount", discount)
        self.env = make(env)
        self.actions = _discrete_actions(self.env)
        self.basis = as_basis(basis)
        self.features = self.basis.build(self.env.observation_space)
        self.seed = _drawn_seed() if seed is None else check.count("seed", seed, least=0)
        agent_seed, environment_seed = np.random.SeedSequence(self.seed).spawn(2)
        self.rng = np.random.default_rng(agent_seed)
        self.session = Session(
            self.env, self.features, int(environment_seed.generate_state(1)[0] >> 1)
        )
        self.state = self._initial_state()
        self.num_timesteps = 0
        self._finished: list[Array] = []

    # What an algorithm must say ---------------------------------------------------------

    @abstractmethod
    def _initial_state(self) -> Any:
        """The state of the algorithm before the first step: a NamedTuple of arrays."""

    @abstractmethod
    def _mean_weights(self) -> Array:
        """The weights of the best estimate of the action values, shape (k,)."""

    @abstractmethod
    def _exploring_actions(self, x: Array) -> NDArray[np.int64]:
        """The actions the agent would explore with, for rows of features."""

    def _std(self, x: Array) -> Array | None:
        """Standard deviations of the action values, for rows of features; None: unknown."""
        return None

    def _news(self) -> str:
        """A few words for the progress bar on how the exploration stands."""
        return ""

    def _raise_concerns(self) -> None:
        """Warn of what the user should know about the numbers."""

    # Learning -----------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int | None = None,
        callback: Callback | None = None,
        progress_bar: bool = False,
        reset_num_timesteps: bool = True,
        *,
        episodes: int | None = None,
    ) -> Self:
        """Act and learn for a number of steps, of episodes, or whichever ends first.

        Parameters
        ----------
        total_timesteps, episodes : int
            At least one of them.
        callback : callable, optional
            Called as ``callback(agent)`` after every episode; False stops the learning.
        progress_bar : bool
        reset_num_timesteps : bool
            Whether `num_timesteps` counts from zero again. What was learnt always stays.

        Returns
        -------
        self
        """
        steps, games = _budget(total_timesteps, episodes)
        if reset_num_timesteps:
            self.num_timesteps = 0
        show = progress_on_terminal if progress_bar else no_progress
        with threadpool_limits(limits=1, user_api="blas"), show(total_timesteps, episodes) as tell:
            self._learn(steps, games, callback, tell)
        self._raise_concerns()
        return self

    def _learn(
        self, steps: int, games: int, callback: Callback | None, tell: Progress
    ) -> None:
        chunk = 100
        while steps > 0 and games > 0:
            start = time.perf_counter()
            made, finished = self.session.run(
                self.functions,
                self.state,
                self.rng,
                min(steps, chunk),
                1 if callback else min(games, chunk),
            )
            steps -= made
            games -= len(finished)
            self.num_timesteps += made
            if len(finished):
                self._finished.append(finished)
            tell(made, finished, self._news())
            if callback and len(finished) and callback(self) is False:
                break
            if made == chunk:
                chunk = _next_chunk(chunk, time.perf_counter() - start)

    @property
    def episodes(self) -> Array:
        """Length and undiscounted return of every finished episode, shape (episodes, 2)."""
        self._finished = [np.concatenate([np.empty((0, 2)), *self._finished])]
        return self._finished[0]

    # Using what was learnt ---------------------------------------------------------------

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]:
        """Actions for an observation or a batch of them, as Stable-Baselines3 has it.

        Parameters
        ----------
        observation : array_like
        state, episode_start
            Accepted for compatibility; there is no recurrent state.
        deterministic : bool
            True: greedy in the best estimate. False: as the agent explores.

        Returns
        -------
        action : int or ndarray
        state
            As it was passed.
        """
        x = self._features_of(observation)
        rows = np.atleast_2d(x)
        if deterministic:
            chosen = np.argmax(self._values(rows), axis=1)
        else:
            chosen = self._exploring_actions(rows)
        chosen = chosen + int(self.env.action_space.start)  # type: ignore[attr-defined]
        return (int(chosen[0]) if x.ndim == 1 else chosen), state

    def action_values(self, observation: ArrayLike) -> ActionValues:
        """What every action is worth, and how sure that is."""
        x = self._features_of(observation)
        rows = np.atleast_2d(x)
        mean, std = self._values(rows), self._std(rows)
        if x.ndim == 1:
            return ActionValues(mean[0], None if std is None else std[0])
        return ActionValues(mean, std)

    def _features_of(self, observation: ArrayLike) -> Array:
        """phi; one observation gives a vector, a batch gives rows."""
        return self.features(observation)

    def _values(self, rows: Array) -> Array:
        return rows @ self._mean_weights().reshape(self.actions, -1).T

    # Settings and keeping -----------------------------------------------------------------

    def get_parameters(self) -> dict[str, Any]:
        """The settings the agent was made with, apart from its environment and basis."""
        signature = inspect.signature(type(self).__init__)
        names = [n for n in signature.parameters if n not in ("self", "env", "basis")]
        return {name: self._setting(name) for name in names}

    def _setting(self, name: str) -> Any:
        value = getattr(self, name)
        return "episode" if name.endswith("_every") and value == 0 else value

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, so that learning on gives the same bits as before."""
        storage.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        env: gym.Env[Any, Any] | str | None = None,
        basis: BasisLike | None = None,
    ) -> Self:
        """Read an agent from a file; nothing in the file is ever run.

        Parameters
        ----------
        path : path
        env : gymnasium.Env or str, optional
            The environment to go on in; the one of the file unless given.
        basis : Basis, callable or fitted transformer, optional
            Needed if it was a function of the user's: functions are not stored.
        """
        return storage.load(cls, path, env, basis)


def _budget(total_timesteps: int | None, episodes: int | None) -> tuple[int, int]:
    if total_timesteps is None and episodes is None:
        raise ValueError("learn() needs total_timesteps or episodes")
    unlimited = 2**62
    return (
        unlimited if total_timesteps is None else check.count("total_timesteps", total_timesteps),
        unlimited if episodes is None else check.count("episodes", episodes),
    )


def _next_chunk(chunk: int, seconds: float) -> int:
    """So many steps that they take about as long as the pause."""
    return int(np.clip(chunk * PAUSE / max(seconds, 1e-9), chunk // 4 + 1, min(4 * chunk, 200_000)))


def _discrete_actions(env: gym.Env[Any, Any]) -> int:
    if not isinstance(env.action_space, gym.spaces.Discrete):
        raise TypeError(
            f"action space {env.action_space} is not discrete: least-squares policy iteration "
            "compares a handful of actions; wrap the environment so that it offers some"
        )
    return int(env.action_space.n)


def _drawn_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])
