"""What all online agents share: an environment, a basis, and Stable-Baselines3's shape."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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
from rblspi.features import BasisLike, as_basis, default_basis
from rblspi.interaction import AgentFunctions, Session, scout
from rblspi.posterior import Posterior

Array = NDArray[np.float64]
Callback = Callable[["Agent"], bool | None]
Range = tuple[ArrayLike, ArrayLike]

#: weights over which a posterior fits into 2.4 GB
MOST_WEIGHTS = 10_000
#: seconds of learning between two looks at the clock, the progress bar and Ctrl-C
PAUSE = 0.1


class ActionValues(NamedTuple):
    """Values of every action in one state, shape (actions,), or in a batch, (N, actions).

    Attributes
    ----------
    mean : ndarray
    std : ndarray or None
        Standard deviation; None where the algorithm does not say how sure it is.
    samples : ndarray or None
        Draws from the posterior, shape (samples, actions) or (samples, N, actions). A draw is
        one value function, the same for all states and actions. None where none were asked for.
    """

    mean: Array
    std: Array | None
    samples: Array | None = None


class Agent(ABC):
    """An agent that learns online from any Gymnasium environment with discrete actions.

    A subclass is one algorithm: compiled `functions`, the `_initial_state` they work on, and
    what it knows of action values. Its constructor's arguments are its settings.
    """

    functions: ClassVar[AgentFunctions]

    def __init__(
        self,
        env: gym.Env[Any, Any] | str,
        basis: BasisLike | None,
        *,
        discount: float,
        seed: int | None,
    ) -> None:
        self.discount = check.fraction("discount", discount)
        self.env = make(env)
        self.actions = _discrete_actions(self.env)
        self.seed = _drawn_seed() if seed is None else check.count("seed", seed, least=0)
        agent_seed, environment_seed, scout_seed = np.random.SeedSequence(self.seed).spawn(3)
        self.basis = (
            default_basis(self.env.observation_space, lambda: scout(self.env, scout_seed))
            if basis is None
            else as_basis(basis)
        )
        self.features = self.basis.build(self.env.observation_space)
        _require_room(self.features.size, self.actions)
        self.rng = np.random.default_rng(agent_seed)
        self.session = Session(
            self.env, self.features, int(environment_seed.generate_state(1)[0] >> 1)
        )
        self.state = self._initial_state()
        self.num_timesteps = 0
        self._episodes = np.empty((64, 2))
        self._finished = 0
        self._stopped = False

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

    @property
    def posterior(self) -> Posterior | None:
        """The Gaussian over weights; None where the algorithm has none."""
        return None

    def _std(self, x: Array) -> Array | None:
        """Standard deviations of the action values, for rows of features; None: unknown."""
        posterior = self.posterior
        return None if posterior is None else posterior.predict(x)[1]

    def diagnostics(self) -> dict[str, float]:
        """How the exploration stands, in numbers: for the progress bar and for logs."""
        return {}

    def _raise_concerns(self) -> None:  # noqa: B027
        """Warn of what the user should know about the numbers."""

    def _integer_ranges(self) -> dict[str, Range]:
        """Lowest and highest values of the arrays of integers, by the last two parts of a name.

        Compiled code uses them as indices without a check, so a file must not hold others. A
        subclass whose state has integers of its own adds their ranges.
        """
        sizes = [len(a) for name, a in storage._arrays(self) if name.endswith("recent.action")]
        return {
            "recent.size": (0, min(sizes, default=1) - 1),
            "recent.action": (0, self.actions - 1),
            "recent.next_action": (-1, self.actions - 1),
            "place.clock": ((-1, 0), (storage.MANY, 0)),
            "state.clock": (0, storage.MANY),
            "statistics.count": (0, storage.MANY),
            "belief.tally": (0, storage.MANY),
        }

    # Learning -----------------------------------------------------------------------------

    def learn(
        self,
        total_timesteps: int | None = None,
        callback: Callback | Sequence[Callback] | None = None,
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
        callback : callable, or sequence of them, optional
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
        self._stopped = False
        show = progress_on_terminal if progress_bar else no_progress
        with threadpool_limits(limits=1, user_api="blas"), show(total_timesteps, episodes) as tell:
            self._learn(steps, games, _as_callbacks(callback), tell)
        self._raise_concerns()
        return self

    def leave_episode(self) -> None:
        """Let the next step begin a new episode."""
        self.session.begin_episode()

    def stop(self) -> None:
        """Let `learn` return soon: from a callback, a signal handler or another thread."""
        self._stopped = True

    def _learn(self, steps: int, games: int, callbacks: Sequence[Callback], tell: Progress) -> None:
        chunk = 100
        while steps > 0 and games > 0 and not self._stopped:
            start = time.perf_counter()
            made, finished = self.session.run(
                self.functions,
                self.state,
                self.rng,
                min(steps, chunk),
                1 if callbacks else min(games, chunk),
            )
            steps -= made
            games -= len(finished)
            self.num_timesteps += made
            self._record(finished)
            self.session.raise_if_unhealthy()
            tell(made, finished, self.diagnostics())
            if len(finished):
                for callback in callbacks:
                    if callback(self) is False:
                        self.stop()
            if made == chunk:
                chunk = _next_chunk(chunk, time.perf_counter() - start)

    @property
    def episodes(self) -> Array:
        """Length and undiscounted return of every finished episode, shape (episodes, 2)."""
        rows = self._episodes[: self._finished]
        rows.flags.writeable = False
        return rows

    def _record(self, rows: Array) -> None:
        """Append to `episodes`; the table doubles when it is full."""
        total = self._finished + len(rows)
        if total > len(self._episodes):
            larger = np.empty((max(total, 2 * len(self._episodes)), 2))
            larger[: self._finished] = self.episodes
            self._episodes = larger
        self._episodes[self._finished : total] = rows
        self._finished = total

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

    def action_values(
        self,
        observation: ArrayLike,
        samples: int = 0,
        rng: np.random.Generator | None = None,
    ) -> ActionValues:
        """What every action is worth, and how sure that is.

        Parameters
        ----------
        observation : array_like
            One observation, or a batch of them.
        samples : int
            How many value functions to draw from the posterior.
        rng : numpy.random.Generator, optional
            What draws them; by default one that gives the same draws until the agent learns on.
        """
        x = self._features_of(observation)
        rows = np.atleast_2d(x)
        mean, std = self._values(rows), self._std(rows)
        drawn = self._sampled_values(rows, samples, rng) if samples else None
        if x.ndim > 1:
            return ActionValues(mean, std, drawn)
        return ActionValues(
            mean[0], None if std is None else std[0], None if drawn is None else drawn[:, 0]
        )

    def probability_best(
        self,
        observation: ArrayLike,
        samples: int = 1000,
        rng: np.random.Generator | None = None,
    ) -> Array:
        """How likely each action is the best one: the share of drawn value functions.

        Parameters
        ----------
        observation : array_like
            One observation, or a batch of them.
        samples : int
            A probability p is known up to the standard error (p (1 - p) / samples)^1/2.
        rng : numpy.random.Generator, optional
            As for `action_values`.

        Returns
        -------
        ndarray, shape (actions,), or (N, actions) for a batch
        """
        check.count("samples", samples)
        values = self.action_values(observation, samples, rng).samples
        assert values is not None
        best = np.argmax(values, axis=-1)
        return np.stack([np.mean(best == a, axis=0) for a in range(self.actions)], axis=-1)

    def _sampled_values(self, rows: Array, samples: int, rng: np.random.Generator | None) -> Array:
        """Values by drawn weights, shape (samples, N, actions)."""
        posterior = self.posterior
        if posterior is None:
            raise ValueError(
                f"{type(self).__name__} keeps no posterior to draw samples={samples} from: an "
                "agent of the class RBLSPI does"
            )
        if rng is None:
            rng = np.random.default_rng([self.seed, self.num_timesteps])
        weights = posterior.sample(rng, check.count("samples", samples))
        values: Array = np.einsum("san,in->sia", weights.reshape(samples, self.actions, -1), rows)
        return values

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
        """Write everything to one file, so that learning on gives the same bits as before.

        Of an environment in Python the state is not in the file: unless saved between two
        episodes, the agent goes on with a new one.
        """
        storage.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        env: gym.Env[Any, Any] | str | None = None,
        basis: BasisLike | None = None,
    ) -> Self:
        """Read an agent from a file; nothing in the file is ever run.

        `Agent.load` reads an agent of whatever class, ``RBLSPI.load`` one of this class only.

        Parameters
        ----------
        path : path
        env : gymnasium.Env or str, optional
            The environment to go on in; the one of the file unless given.
        basis : Basis, callable or fitted transformer, optional
            Needed if it was a function of the user's: functions are not stored.
        """
        return storage.load(cls, path, env, basis)


def _as_callbacks(callback: Callback | Sequence[Callback] | None) -> Sequence[Callback]:
    if callback is None:
        return ()
    return (callback,) if callable(callback) else callback


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


def _require_room(features: int, actions: int) -> None:
    """A posterior holds a few matrices of k x k: say so before the memory is gone."""
    k = features * actions
    if k > MOST_WEIGHTS:
        raise ValueError(
            f"{features} features for each of {actions} actions are {k} weights, and a posterior "
            f"over them takes {24e-9 * k**2:.0f} GB: use a coarser basis, with at most "
            f"{MOST_WEIGHTS // actions} features"
        )


def _drawn_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])
