"""Environments of bsuite by their ids, as Gymnasium environments, and scores by its rules.

bsuite (Osband et al., 2020, Behaviour suite for reinforcement learning) is an optional dependency.
Its own analysis needs an old pandas, so the rules are written down here, as functions of what an
environment notes down after every episode (`History`). An experiment is scored over all of its ids:

| experiment | score |
|---|---|
| bandit, catch | 1 - mean regret of an episode over that of a random agent (0.5; 1.6) |
| mountain_car | the same with a regret of 1000, counted from a return of -100 |
| cartpole | half of the same with 1000, from a return of 1000; half for an episode above 500 |
| discounting_chain | 1 - 10 (1.1 - mean return) |
| deep_sea | the share of sizes N with fewer than 90% bad episodes, before episode 2^N + 100 |
| deep_sea_stochastic | the same with 80%, from episode 100 on |
| umbrella_length | the share of lengths with a mean regret below 0.5 |

Scores of regrets are clipped to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core.types import Vector

#: regret of an agent that acts at random, in an episode
_BANDIT, _CATCH, _CAR, _POLE = 0.5, 1.6, 1000.0, 1000.0
#: return of a good policy for the mountain car, and of a good episode with the pole
_CAR_RETURN, _POLE_GOOD = -100.0, 500.0


class BsuiteEnvironment(gym.Env[Any, Any]):
    """An environment of bsuite.

    Observations are vectors or, with ``table``, the numbers of the few boards that there are.

    Parameters
    ----------
    bsuite_id : str
        For example "deep_sea/0" or "cartpole/3".
    table : bool
        Whether boards become numbers; only for deep_sea, deep_sea_stochastic, catch and bandit.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, bsuite_id: str, table: bool = False) -> None:
        self.inner = _load(bsuite_id)
        self.bsuite_id, self.table = bsuite_id, table
        self.history = History([], [])
        self.action_space = gym.spaces.Discrete(self.inner.action_spec().num_values)
        shape = self.inner.observation_spec().shape
        self._table = _TABLES.get(self.experiment) if table else None
        if table and self._table is None:
            raise ValueError(f"{bsuite_id} has no table: its observations are not boards")
        self.observation_space = (
            gym.spaces.Box(-np.inf, np.inf, (int(np.prod(shape)),), np.float64)
            if self._table is None
            else gym.spaces.Discrete(self._table.states(shape))
        )

    @property
    def experiment(self) -> str:
        """The name before the number of the setting."""
        return self.bsuite_id.split("/")[0]

    @property
    def episodes(self) -> int:
        """The number of episodes that bsuite asks for."""
        return int(self.inner.bsuite_num_episodes)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; a seed replaces the random numbers of the environment."""
        super().reset(seed=seed)
        if seed is not None and hasattr(_innermost(self.inner), "_rng"):
            _innermost(self.inner)._rng = np.random.RandomState(seed % 2**32)
        self._return = 0.0
        return self._seen(self.inner.reset().observation), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make a step; an episode that ends is noted in the history."""
        step = self.inner.step(int(action))
        reward, ended = float(step.reward or 0.0), bool(step.last())
        self._return += reward
        if ended:
            self.history.returns.append(self._return)
            self.history.notes.append(dict(self.inner.bsuite_info()))
        cut = ended and step.discount != 0.0
        return self._seen(step.observation), reward, ended and not cut, cut, {}

    def _seen(self, observation: NDArray[Any]) -> Any:
        if self._table is not None:
            return self._table.number(np.asarray(observation))
        return np.asarray(observation, dtype=np.float64).ravel()


class History(NamedTuple):
    """What happened in the episodes so far."""

    returns: list[float]
    notes: list[dict[str, Any]]  # sums over all episodes so far, see bsuite_info of bsuite

    def note(self, name: str) -> Vector:
        """One of the notes, after every episode."""
        return np.array([float(note[name]) for note in self.notes])


class _Table(NamedTuple):
    states: Callable[[tuple[int, ...]], int]
    number: Callable[[NDArray[Any]], int]


def _sea_number(board: NDArray[Any]) -> int:
    """The place of the diver; the empty board at the end of an episode counts as the first."""
    return int(board.argmax())


def _catch_number(board: NDArray[Any]) -> int:
    """The place of the ball above the last row, and the column of the paddle in it."""
    return int(board[:-1].argmax()) * len(board[0]) + int(board[-1].argmax())


_SEA = _Table(lambda shape: math.prod(shape), _sea_number)
_TABLES = {
    "bandit": _Table(lambda shape: 1, lambda board: 0),
    "catch": _Table(lambda shape: math.prod(shape) * shape[1], _catch_number),
    "deep_sea": _SEA,
    "deep_sea_stochastic": _SEA,
}


def score(experiment: str, runs: Mapping[str, tuple[Mapping[str, Any], History]]) -> float:
    """The score of an experiment, from 0 to 1, by bsuite's rule.

    Parameters
    ----------
    experiment : str
    runs : mapping
        By bsuite id, the settings of that id (``settings``) and what happened.
    """
    if experiment not in RULES:
        raise ValueError(f"there is no rule for {experiment!r}: choose from {', '.join(RULES)}")
    if not runs:
        raise ValueError(f"runs has no run of {experiment}")
    return float(RULES[experiment](list(runs.values())))


def settings(experiment: str) -> dict[str, dict[str, Any]]:
    """The settings of an experiment, by bsuite id."""
    from bsuite import sweep

    found = getattr(sweep, experiment.upper())
    return {name: dict(sweep.SETTINGS[name]) for name in found}


Runs = Sequence[tuple[Mapping[str, Any], History]]


def _clipped(value: float) -> float:
    return float(np.clip(value, 0.0, 1.0))


def _by_regret(runs: Runs, base: float) -> float:
    """1 - mean regret / base; notes have the sum of regrets."""
    means = [history.notes[-1]["total_regret"] / len(history.notes) for _, history in runs]
    return _clipped(1.0 - float(np.mean(means)) / base)


def _mountain_car(runs: Runs) -> float:
    means = [history.notes[-1]["raw_return"] / len(history.notes) for _, history in runs]
    return _clipped(1.0 - (_CAR_RETURN - float(np.mean(means))) / _CAR)


def _cartpole(runs: Runs) -> float:
    means = [history.notes[-1]["raw_return"] / len(history.notes) for _, history in runs]
    good = [history.notes[-1]["best_episode"] > _POLE_GOOD for _, history in runs]
    return 0.5 * (_clipped(float(np.mean(means)) / _POLE) + float(np.mean(good)))


def _discounting_chain(runs: Runs) -> float:
    mean = np.mean([np.mean(history.returns) for _, history in runs])
    return _clipped(1.0 - 10.0 * (1.1 - float(mean)))


def _deep_sea(runs: Runs, most_bad: float, first: int) -> float:
    """The share of runs in which few episodes were bad soon enough."""
    return float(np.mean([first_solved(*run, most_bad, first) is not None for run in runs]))


def first_solved(
    given: Mapping[str, Any], history: History, most_bad: float = 0.9, first: int = 1
) -> int | None:
    """The first episode after which a share below ``most_bad`` of all was bad, if it is in time."""
    episodes = np.arange(1, len(history.notes) + 1)
    shares = history.note("total_bad_episodes") / episodes
    found = episodes[(shares < most_bad) & (episodes >= first)]
    in_time = len(found) and found[0] < 2.0 ** given["size"] + 100
    return int(found[0]) if in_time else None


def _umbrella_length(runs: Runs) -> float:
    means = [history.notes[-1]["total_regret"] / len(history.notes) for _, history in runs]
    return float(np.mean(np.array(means) < 0.5))


RULES: dict[str, Callable[[Runs], float]] = {
    "bandit": lambda runs: _by_regret(runs, _BANDIT),
    "cartpole": _cartpole,
    "catch": lambda runs: _by_regret(runs, _CATCH),
    "deep_sea": lambda runs: _deep_sea(runs, 0.9, 1),
    "deep_sea_stochastic": lambda runs: _deep_sea(runs, 0.8, 100),
    "discounting_chain": _discounting_chain,
    "mountain_car": _mountain_car,
    "umbrella_length": _umbrella_length,
}


def _load(bsuite_id: str) -> Any:
    try:
        from bsuite import bsuite, sweep
    except ImportError as error:
        raise ImportError(
            f"{bsuite_id} is an environment of bsuite: install it with pip install 'rblspi[bsuite]'"
        ) from error
    if bsuite_id not in sweep.SETTINGS:
        raise ValueError(f"bsuite has no id {bsuite_id!r}: write for example deep_sea/0")
    return bsuite.load(bsuite_id.split("/")[0], sweep.SETTINGS[bsuite_id])


def _innermost(env: Any) -> Any:
    """The environment inside wrappers of bsuite, which has the random numbers."""
    while hasattr(env, "_env"):
        env = env._env
    return env
