"""The base of all online agents: an environment, a basis, and Stable-Baselines3's interface."""

from __future__ import annotations

import copy
import inspect
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from rblspi.core import check
from rblspi.core.progress import Tell, progress
from rblspi.core.settings import Setting, set_all, signature_of
from rblspi.core.types import Array, Matrix, Vector
from rblspi.environments.actions import action_set
from rblspi.environments.lookup import EnvironmentLike, describe, make
from rblspi.environments.spaces import action_mask, as_vectors
from rblspi.features import BasisLike, as_basis, default_basis, with_bounds
from rblspi.model.posterior import Posterior
from rblspi.offline.linear_draws import draws_of_weights
from rblspi.policies.choice import EpsilonGreedy, Greedy
from rblspi.policies.given import BatchPolicy
from rblspi.policies.linear import LinearPolicy, action_names_of, choose_actions
from rblspi.policies.values import ActionValues, Draws
from rblspi.registry import name_of
from rblspi.rollout.loop import EPISODES, STEPS, AgentFunctions
from rblspi.rollout.memory import CAPACITY, SEEN, capacity_for
from rblspi.rollout.session import session_for
from rblspi.rollout.steps import observe_random_actions

if TYPE_CHECKING:
    from rblspi.rollout.calibration import Calibration

Callback = Callable[["Agent"], bool | None]

#: most transitions for the evaluation of a policy, which then takes some seconds
MOST_EVALUATED = 100_000
#: most weights: their posterior takes 2.4 GB
MOST_WEIGHTS = 10_000
#: speed of a rank-one update on one core; slower for many weights, which do not fit in cache
MULTIPLY_ADDS_A_SECOND = 3e9
#: seconds of learning between two looks at the progress bar, at other threads and at Ctrl-C
PAUSE = 0.1
#: episodes in the mean return that the progress bar shows
SHOWN_EPISODES = 100


class Cost(NamedTuple):
    """Approximate cost of learning: memory with workspace, and time without the environment's."""

    weights: int
    megabytes: float
    seconds_a_step: float
    advice: str = "time and memory grow with their square, so a coarser basis makes it less"

    def __str__(self) -> str:
        """One sentence, with how to make it less, if there is a way."""
        cost = (
            f"{self.weights:,} weights take about {self.megabytes:,.0f} MB and "
            f"{1e3 * self.seconds_a_step:.2g} ms a step"
        )
        return f"{cost}; {self.advice}" if self.advice else cost


class Budget(NamedTuple):
    """The steps and episodes that are left; learning ends when either is used up."""

    steps: int
    episodes: int

    @classmethod
    def of(cls, steps: int | None, episodes: int | None) -> Self:
        """The budget from the arguments of `Agent.learn`, at least one of which must be given."""
        if steps is None and episodes is None:
            raise ValueError("learn() needs total_timesteps or episodes")
        return cls(
            check.LARGEST_COUNT if steps is None else check.count("total_timesteps", steps),
            check.LARGEST_COUNT if episodes is None else check.count("episodes", episodes),
        )

    def share_of(self, whole: Budget) -> float:
        """The share of the whole that is done."""
        return 1.0 - min(left / all_ for left, all_ in zip(self, whole, strict=True))


class Agent(ABC):
    """An agent that learns online from any Gymnasium environment.

    Actions are discrete, or one to three numbers with bounds, see `rblspi.environments.actions`.

    A subclass is one algorithm: compiled `functions`, the `_initial_state` they work on, and the
    weights it acts by. Its settings are class attributes, each a `Setting`.

    One thread at a time learns. Other threads may predict, save and look meanwhile: they wait
    until the steps under way are done.
    """

    functions: ClassVar[AgentFunctions]
    #: transitions that it keeps, unless its observations are large
    most_remembered: ClassVar[int] = CAPACITY

    discount = Setting(0.99, check.fraction)
    seed = Setting[Any](None, check.seed)  # drawn from the operating system unless given

    def __init_subclass__(cls) -> None:
        cls.__signature__ = signature_of(cls)  # type: ignore[attr-defined]

    def __init__(
        self, env: EnvironmentLike, basis: BasisLike | None = None, **settings: Any
    ) -> None:
        set_all(self, settings)
        self.env = make(env)
        self.action_set = action_set(self.env.action_space)
        self.actions = self.action_set.count
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
        basis = self._recipe(basis)
        agent_seed, environment_seed, basis_seed = np.random.SeedSequence(self.seed).spawn(3)
        space = self.env.observation_space
        scout = partial(observe_random_actions, self.env, basis_seed)
        self.basis = (
            default_basis(space, scout)
            if basis is None
            else with_bounds(as_basis(basis), space, scout)
        )
        self.features = self.basis.build(space)
        self._require_memory()
        self.rng = np.random.default_rng(agent_seed)
        self.session = session_for(
            self.env,
            self.features,
            int(environment_seed.generate_state(1)[0] >> 1),
            capacity_for(self.features.input_size, self.most_remembered),
        )
        self._require_one_episode()
        self.state = self._initial_state()
        self._compiled = self.functions.over(self.state)
        self.num_timesteps = 0
        self._episodes = np.empty((64, 2))
        self._finished = 0
        self._latest: tuple[int, LinearPolicy] | None = None  # and the transitions seen
        self._stopped = False
        self._lock = threading.RLock()  # of the state, held while it changes
        self._learning = threading.Lock()

    # What an algorithm must define --------------------------------------------------------

    def _recipe(self, given: BasisLike | None) -> BasisLike | None:
        """The basis to build from the one that the user gave, or None for the default.

        This is the place to refuse settings, a basis or an environment that do not fit together.
        """
        return given

    @abstractmethod
    def _initial_state(self) -> Any:
        """The state of the algorithm before the first step: a NamedTuple of arrays and numbers.

        Fields whose names start with ``workspace`` hold nothing between steps and are not saved.
        A method ``integer_ranges(actions)`` gives the ranges of integers that are used as indices.
        """

    def _weights(self, explore: bool) -> Vector:
        """The weights that the agent acts by, shape (k,): to explore, or by its best estimate."""
        weights: Vector = self.state.weights
        return weights

    def _steps_to_plan(self) -> int:
        """Steps until the next call of `_plan`; it may be 0 only after an episode or a step."""
        return check.LARGEST_COUNT

    def _plan(self) -> None:  # noqa: B027
        """Plan in Python, between two steps; `_steps_to_plan` is positive afterwards."""

    def _exploring_epsilon(self) -> float:
        """The probability of a random action while the agent explores."""
        return 0.0

    def _follows_an_episode(self) -> bool:
        """Whether the algorithm depends on the step before, as SARSA does."""
        return False

    def _choice(self, explore: bool) -> BatchPolicy:
        """The rule by which the agent chooses actions for a batch of observations."""
        weights = self._weights(explore).reshape(self.actions, -1)
        epsilon = self._exploring_epsilon() if explore else 0.0
        return EpsilonGreedy(weights, epsilon, self.rng) if epsilon else Greedy(weights)

    @property
    def posterior(self) -> Posterior | None:
        """The Gaussian over weights; None where the algorithm has none."""
        return None

    def diagnostics(self) -> dict[str, float]:
        """Numbers about the state of exploration, for the progress bar and for logs."""
        return {}

    def _warn(self) -> None:  # noqa: B027
        """Warn of numerical problems."""

    def cost(self) -> Cost:
        """Approximate cost of learning, if a step updates and downdates a factor of k x k."""
        from rblspi.online import agent_file

        arrays = sum(field.array.nbytes for field in agent_file.fields(self))
        memory = sum(array.nbytes for array in self.session.memory)  # as yet it may be empty
        weights = self.actions * self.features.size
        return Cost(
            weights, 1e-6 * (2 * arrays + memory), 6.0 * weights**2 / MULTIPLY_ADDS_A_SECOND
        )

    def _require_memory(self) -> None:
        """Refuse a basis whose posterior, a few matrices of k x k, does not fit into memory."""
        k = self.features.size * self.actions
        if k > MOST_WEIGHTS:
            raise ValueError(
                f"{self.features.size} features for each of {self.actions} actions are {k} "
                f"weights, and a posterior over them takes {24e-9 * k**2:.0f} GB: use a coarser "
                f"basis, with at most {MOST_WEIGHTS // self.actions} features"
            )

    def _require_one_episode(self) -> None:
        """Refuse several copies of an environment if the algorithm follows a single episode."""
        if self.session.copies > 1 and self._follows_an_episode():
            raise ValueError(
                f"{type(self).__name__} with these settings follows one episode from step to step "
                f"and cannot learn from {self.session.copies} copies at a time: pass a single "
                "environment"
            )

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
            Called as ``callback(agent)`` after every episode; False stops the learning. A callback
            with a method ``steps_to_go(agent)`` is called after that many steps instead.
        progress_bar : bool
        reset_num_timesteps : bool
            Whether `num_timesteps` counts from zero again. The agent keeps its knowledge either
            way.
        """
        budget = Budget.of(total_timesteps, episodes)
        callbacks = (callback,) if callable(callback) else callback or ()
        with (
            self._alone(),
            threadpool_limits(limits=1, user_api="blas"),
            progress(1.0, quiet=not progress_bar) as tell,
        ):
            if reset_num_timesteps:
                self.num_timesteps = 0
            self._stopped = False
            self._learn(budget, callbacks, tell if progress_bar else None)
        self._warn()
        return self

    def leave_episode(self) -> None:
        """Let the next step begin a new episode."""
        self.session.begin_episode()

    def stop(self) -> None:
        """Let `learn` return soon: from a callback, a signal handler or another thread."""
        self._stopped = True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep a second thread, or a callback, from learning at the same time."""
        if not self._learning.acquire(blocking=False):
            raise RuntimeError(
                "this agent is already learning, in another thread or around this call: wait for "
                "it, or make another agent"
            )
        try:
            yield
        finally:
            self._learning.release()

    def _learn(self, left: Budget, callbacks: Sequence[Callback], tell: Tell | None) -> None:
        periodic: list[Any] = [c for c in callbacks if hasattr(c, "steps_to_go")]
        each_episode = [c for c in callbacks if not hasattr(c, "steps_to_go")]
        whole, chunk, first = left, 100, self._finished
        self._plan_if_due()  # a loaded or interrupted agent may have a plan due
        while left.steps > 0 and left.episodes > 0 and not self._stopped:
            start, finished = time.perf_counter(), self._finished
            one_by_one = each_episode or self._steps_to_plan() < check.LARGEST_COUNT
            due_in = min((c.steps_to_go(self) for c in periodic), default=chunk)
            made = self._run(
                min(left.steps, chunk, max(self._steps_to_plan(), 1), max(due_in, 1)),
                1 if one_by_one else min(left.episodes, chunk),
            )
            self._plan_if_due()
            left = Budget(left.steps - made, left.episodes - (self._finished - finished))
            if tell is not None:
                tell(left.share_of(whole), self._words(first))
            due = [c for c in periodic if c.steps_to_go(self) <= 0]
            self._call([*(each_episode if self._finished > finished else ()), *due])
            if made == chunk:
                chunk = _next_chunk(chunk, time.perf_counter() - start)

    def _call(self, callbacks: Sequence[Callback]) -> None:
        for callback in callbacks:
            answer = callback(self)
            if answer is not None and not answer:  # False, also NumPy's
                self.stop()

    def _plan_if_due(self) -> None:
        if self._steps_to_plan() <= 0:
            with self.session.signals.deferred(), self._lock:
                self._plan()

    def _run(self, steps: int, episodes: int) -> int:
        """Make some steps and count them, even if the environment raises an error.

        Signals are handled while an environment in Python is at work, and afterwards.
        """
        rows = episodes + self.session.copies - 1  # which may end at the same time
        record, counts = np.empty((rows, 2)), np.zeros(2, np.int64)
        with self.session.signals.deferred(), self._lock:
            try:
                self.session.run(self._compiled, self.state, self.rng, steps, record, counts)
            except BaseException:
                self.leave_episode()
                raise
            finally:
                self.num_timesteps += int(counts[STEPS])
                self._record(record[: counts[EPISODES]])
        return int(counts[STEPS])

    def _words(self, first: int) -> str:
        """The words of the progress bar about the episodes since ``first``."""
        words = [f"step {self.num_timesteps:,}", f"episode {self._finished:,}"]
        if self._finished > first:
            latest = self.episodes[max(first, self._finished - SHOWN_EPISODES) :]
            length, episode_return = latest.mean(axis=0)
            words += [f"return {episode_return:.4g}", f"length {length:.4g}"]
        words += [f"{name} {value:.2g}" for name, value in self.diagnostics().items()]
        return "  ".join(words)

    @property
    def episodes(self) -> Matrix:
        """Length and undiscounted return of every finished episode, shape (episodes, 2)."""
        rows = self._episodes[: self._finished]
        rows.flags.writeable = False
        return rows

    def _record(self, rows: Matrix) -> None:
        """Append to `episodes`; the table doubles when it is full."""
        total = self._finished + len(rows)
        if total > len(self._episodes):
            larger = np.empty((max(total, 2 * len(self._episodes)), 2))
            larger[: self._finished] = self.episodes
            self._episodes = larger
        self._episodes[self._finished : total] = rows
        self._finished = total

    # Using what was learnt ---------------------------------------------------------------

    def policy(self, explore: bool = False) -> LinearPolicy:
        """The policy found so far, by the best estimate or, with ``explore``, as in training."""
        with self._lock:
            return LinearPolicy(
                basis=self.basis,
                features=self.features,
                weights=self._weights(explore).copy(),
                observation_space=self.env.observation_space,
                action_space=self.env.action_space,
                draws=None if explore else self._draws(),
                posterior=self.posterior,
                epsilon=self._exploring_epsilon() if explore else 0.0,
                discount=self.discount,
                environment=describe(self.env),
                action_names=action_names_of(self.env, self.actions),
                provenance={
                    "algorithm": name_of(type(self)),
                    "settings": self.get_parameters(),
                    "transitions": self.num_timesteps,
                },
                seed=(self.seed, self.num_timesteps),
                rng=copy.deepcopy(self.rng),
            )

    def _draws(self) -> Draws | Callable[[LinearPolicy], Draws] | None:
        """Draws around the best estimate, or how to find them.

        An agent's sums contain the next actions of all its past policies. By default its present
        policy is therefore evaluated afresh on the transitions in its memory.
        """
        memory = self.session.memory
        if not memory.size:
            return None
        return partial(draws_of_weights, memory.transitions(self.features.shape, MOST_EVALUATED))

    def _stated(self) -> LinearPolicy:
        """The policy found so far, which is kept until the agent learns on."""
        with self._lock:
            seen = int(self.session.memory.counters[SEEN])
            if self._latest is None or self._latest[0] != seen:
                self._latest = (seen, self.policy())
            return self._latest[1]

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Actions by the best estimate if ``deterministic``, else as in exploration.

        Otherwise it works as `LinearPolicy.predict`.
        """
        with self._lock:
            choose, actions = self._choice(not deterministic), self.action_set
            space = self.env.observation_space
            if action_masks is None:
                action_masks = action_mask(space, observation)
            seen = as_vectors(space, observation)
            return choose_actions(self.features, choose, seen, actions, action_masks), state

    def action_values(self, observation: ArrayLike) -> ActionValues:
        """What every action is worth by the best estimate, see `LinearPolicy.action_values`."""
        return self._stated().action_values(observation)

    def probability_best(self, observation: ArrayLike) -> Array:
        """Probabilities of being the best action; see `ActionValues.probability_best`."""
        return self._stated().probability_best(observation)

    def calibrate(
        self, env: gym.Env[Any, Any] | str | None = None, *, seed: int = 0, **settings: int
    ) -> Calibration:
        """Compare the stated intervals with simulated action values.

        The arguments are those of `rblspi.calibrate`.
        """
        from rblspi.rollout.calibration import calibrate

        return calibrate(self, env, seed=seed, **settings)

    # Settings and files -------------------------------------------------------------------

    def get_parameters(self) -> dict[str, Any]:
        """The settings the agent was made with, apart from its environment and basis."""
        names = [n for n in inspect.signature(type(self)).parameters if n not in ("env", "basis")]
        return {name: self._setting(name) for name in names}

    def _setting(self, name: str) -> Any:
        value = getattr(self, name)
        return "episode" if name.endswith("_every") and value == 0 else value

    def __repr__(self) -> str:
        name = "an environment without id" if self.env.spec is None else self.env.spec.id
        return (
            f"<{type(self).__name__} on {name}: {self.num_timesteps:,} steps, "
            f"{self._finished:,} episodes, {self.actions} actions x {self.features.size} features "
            f"of {self.basis}>"
        )

    def __getstate__(self) -> Any:
        raise TypeError(
            f"{type(self).__name__} is neither copied nor pickled, because its environment may not "
            "be: save() it and load() the file for a second one, or take its policy()"
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file; a loaded agent continues with the same bits.

        The file does not contain the state of an environment in Python: unless it was saved between
        two episodes, the loaded agent begins a new episode.
        """
        from rblspi.online import agent_file

        with self._lock:
            agent_file.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        env: EnvironmentLike | None = None,
        basis: BasisLike | None = None,
    ) -> Self:
        """Read an agent from a file; nothing in the file is ever run.

        `Agent.load` reads an agent of any registered algorithm, ``RBLSPI.load`` only its own. It
        goes on in the environment of the file unless another one is given. A basis that was a
        function of the user's is not stored and has to be passed again.
        """
        from rblspi.online import agent_file

        return agent_file.load(cls, path, env, basis)


def _next_chunk(chunk: int, seconds: float) -> int:
    """The number of steps that take about as long as the pause."""
    return int(np.clip(chunk * PAUSE / max(seconds, 1e-9), chunk // 4 + 1, min(4 * chunk, 200_000)))
