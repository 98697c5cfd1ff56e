"""What a policy is drawn over: coordinates of its observations, their ranges, names and values.

The coordinates are the numbers of an observation, the columns of a log, or column and row where the
states are the cells of a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Matrix, Vector
from rblspi.data.encoding import Encoding, Input
from rblspi.environments.spaces import (
    as_vector,
    input_size,
    limits,
    observation_shape,
    vector_space,
)
from rblspi.features.bounds import bounds
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.evaluate import Actor, act_of, environment_for, policy_of
from rblspi.rollout.steps import episodes as play

#: names of the dimensions and of the actions of known environments, by a part of their id
_NAMES: dict[str, tuple[str, str]] = {
    "MountainCar": ("position, velocity", "push left, coast, push right"),
    "CartPoleSwingUp": (
        "cart position, cart velocity, cos θ, sin θ, dθ/dt",
        "push left, coast, push right",
    ),
    "CartPole": (
        "cart position, cart velocity, pole angle, pole angular velocity",
        "push left, push right",
    ),
    "InvertedPendulum": ("angle, angular velocity", "push left, coast, push right"),
    "Acrobot": (
        "cos θ₁, sin θ₁, cos θ₂, sin θ₂, dθ₁/dt, dθ₂/dt",
        "torque −1, no torque, torque +1",
    ),
    "PuddleWorld": ("x, y", "up, down, left, right"),
    "ChainWalk": ("state", "left, right"),
    "RiverSwim": ("state", "left, right"),
    "NChain": ("state", "left, right"),
    "LunarLander": (
        "x, y, x velocity, y velocity, angle, angular velocity, left leg, right leg",
        "coast, fire left, fire main, fire right",
    ),
    "FrozenLake": ("state", "left, down, right, up"),
    "CliffWalking": ("state", "up, right, down, left"),
    "Taxi": ("state", "south, north, east, west, pick up, drop off"),
}
#: number and largest length of the episodes that show where the policy goes
_EPISODES, _LONGEST = 5, 1000

#: rows and columns
Grid = tuple[int, int]


class Coordinate(NamedTuple):
    """A number, a whole number, or a word, which is drawn at its place in the list of words."""

    name: str
    low: float
    high: float
    whole: bool = False
    words: tuple[str, ...] = ()

    def points(self, count: int) -> Vector:
        """Values from low to high: all whole numbers, or so many others."""
        if self.whole:
            return np.arange(self.low, self.high + 1.0)
        return np.linspace(self.low, self.high, count)

    def nearest(self, value: float) -> float:
        """The possible value that is nearest to another number."""
        inside = min(max(float(value), self.low), self.high)
        return float(round(inside)) if self.whole else inside

    def text(self, value: float) -> str:
        """A value as a person writes it."""
        return self.words[int(value)] if self.words else f"{value:.4g}"


class Space(NamedTuple):
    """How coordinates, shape (N, d), become observations, and observations coordinates."""

    observations: gym.Space[Any]
    inputs: Encoding | None  # of the columns of a log
    grid: Grid | None  # of the cells that are the states

    def observations_at(self, coordinates: ArrayLike) -> NDArray[Any]:
        """The observations at some coordinates."""
        rows = np.asarray(coordinates, dtype=np.float64)
        if self.grid is not None:
            column, row = rows.T
            rows = self._first + row * self.grid[1] + column
        elif self.inputs is not None:
            pairs = zip(self.inputs.inputs, rows.T, strict=True)
            rows = self.inputs.encoded([_with_missing(each, column) for each, column in pairs])
        return rows.reshape(-1, *observation_shape(self.observations))

    def coordinates_of(self, observations: Matrix) -> Matrix:
        """The coordinates of some observations, given as vectors, shape (N, size)."""
        if self.grid is not None:
            number = observations[:, 0] - self._first
            return np.column_stack([number % self.grid[1], number // self.grid[1]])
        if self.inputs is None or self.inputs.alone:
            return observations
        columns = []
        for each, first in zip(self.inputs.inputs, self.first_components, strict=True):
            indicators = observations[:, first : first + len(each.names)]
            columns.append(indicators.argmax(axis=1) if each.words else indicators[:, 0])
        return np.column_stack(columns).astype(np.float64)

    @property
    def first_components(self) -> list[int]:
        """The first component of an observation that belongs to each of its coordinates."""
        if self.inputs is None or self.inputs.alone:
            return [*range(input_size(self.observations))]
        sizes = [len(each.names) for each in self.inputs.inputs]
        return [sum(sizes[:place]) for place in range(len(sizes))]

    @property
    def _first(self) -> float:
        return float(limits(self.observations)[0][0])


def _with_missing(each: Input, column: Vector) -> Vector:
    """The values of a column, where the place behind the last word stands for a missing one."""
    return np.where(column == len(each.words), np.nan, column) if each.words else column


class Domain(NamedTuple):
    """Where and how a policy is drawn; everything is in coordinates, d of them."""

    coordinates: list[Coordinate]
    point: Vector  # that slices go through, shape (d,)
    actions: list[str]  # their names
    episodes: list[Matrix]  # a few episodes of the policy, shape (steps, d) each
    data: Matrix  # what the agent remembers having seen, shape (N, d)
    space: Space

    @property
    def names(self) -> list[str]:
        """The names of the coordinates."""
        return [coordinate.name for coordinate in self.coordinates]


def find(
    actor: Actor,
    env: gym.Env[Any, Any] | str | None = None,
    *,
    at: Sequence[float] | None = None,
    names: Sequence[str] | None = None,
    grid: Grid | None = None,
    data: ArrayLike | None = None,
    seed: int = 0,
) -> Domain:
    """Find what a policy is drawn over.

    A drawing has the bounds of the basis, of the observation space, or of the observations in the
    episodes, whichever exist first.

    Parameters
    ----------
    actor : Agent or LinearPolicy
    env : gymnasium.Env or str, optional
        Where the policy acts for a few episodes, as for `rblspi.evaluate`. A policy without an
        environment has no episodes.
    at : sequence of float, optional
        The observation that slices go through; by default the median over the episodes, or over
        the data where there are none.
    names : sequence of str, optional
        Names of the coordinates; by default those of the columns of a log, or those in
        ``env.metadata["observation_names"]``.
    grid : (int, int), optional
        Rows and columns if the states are the cells of a grid, counted row by row; by default the
        shape of ``env.unwrapped.desc`` or ``env.unwrapped.shape``, if it has as many cells as
        there are states.
    data : array-like, shape (N, ...), optional
        Observations that the policy was learnt from; by default what an agent remembers.
    seed : int
        Seed of the episodes.
    """
    policy: LinearPolicy = policy_of(actor)
    size = input_size(policy.observation_space)
    nowhere = env is None and getattr(actor, "env", None) is None and policy.environment is None
    with nullcontext() if nowhere else environment_for(actor, env) as environment:
        visited = [] if environment is None else _visited(policy, environment, seed)
        own_names = () if environment is None else environment.metadata.get("observation_names")
        grid = _grid(policy.observation_space, environment, grid)
    space = Space(policy.observation_space, policy.inputs, grid)
    known = _remembered(actor, size) if data is None else _as_rows(data, size)
    seen = np.concatenate(visited) if visited else known
    lower, upper = _limits(policy, seen)
    coordinates = _coordinates(space, lower, upper, _names(policy, names, own_names or ()))
    middle = seen if len(seen) else np.array([lower, upper])
    if at is not None:
        if len(at) != size:
            raise ValueError(f"at={at} must have {size} numbers, one for each dimension")
        middle = np.array([at], np.float64)
    point = np.median(space.coordinates_of(middle), axis=0)
    return Domain(
        coordinates=coordinates,
        point=np.where([each.whole for each in coordinates], np.round(point), point),
        actions=_action_names(policy),
        episodes=[space.coordinates_of(path) for path in visited],
        data=space.coordinates_of(known),
        space=space,
    )


def _visited(policy: LinearPolicy, env: gym.Env[Any, Any], seed: int) -> list[Matrix]:
    """Observations in a few episodes of the policy."""
    played = play(env, act_of(policy), _EPISODES, seed=seed, longest=_LONGEST - 1)
    paths = [[s.observation for s in steps] + [steps[-1].next_observation] for steps in played]
    space = env.observation_space
    return [np.array([as_vector(space, observation) for observation in path]) for path in paths]


def _remembered(actor: Actor, size: int) -> Matrix:
    session = getattr(actor, "session", None)
    if session is None:
        return np.empty((0, size))
    return np.asarray(session.memory.observations[: session.memory.size]).copy()


def _as_rows(data: ArrayLike, size: int) -> Matrix:
    array = np.asarray(data, dtype=np.float64)
    if array.size != len(array) * size:
        raise ValueError(
            f"data of shape {array.shape} must have {size} numbers in every row, as the "
            "observations of the policy have"
        )
    return array.reshape(-1, size)


def _limits(policy: LinearPolicy, seen: Matrix) -> tuple[Vector, Vector]:
    """Bounds of the basis, of the space, or of the observations seen."""
    low, high = (getattr(policy.basis, name, None) for name in ("low", "high"))
    space = vector_space(policy.observation_space)
    if not isinstance(space, gym.spaces.Box):
        return bounds(space)
    try:
        return bounds(space, low, high)
    except ValueError:
        if low is not None or high is not None or not len(seen):
            raise
        margin = 0.05 * np.ptp(seen, axis=0) + 1e-6
        own_low, own_high = space.low.ravel(), space.high.ravel()
        return (
            np.where(np.abs(own_low) < 1e30, own_low, seen.min(axis=0) - margin),
            np.where(np.abs(own_high) < 1e30, own_high, seen.max(axis=0) + margin),
        )


def _coordinates(space: Space, low: Vector, high: Vector, names: list[str]) -> list[Coordinate]:
    if space.grid is not None:
        rows, columns = space.grid
        return [
            Coordinate("column", 0.0, columns - 1.0, whole=True),
            Coordinate("row", 0.0, rows - 1.0, whole=True),
        ]
    whole = not isinstance(vector_space(space.observations), gym.spaces.Box)
    inputs = (None,) * len(low) if space.inputs is None else space.inputs.inputs
    found = []
    for name, each, first in zip(names, inputs, space.first_components, strict=True):
        if each is not None and each.words:
            words = each.words if each.fill is None else (*each.words, "missing")
            found.append(Coordinate(name, 0.0, len(words) - 1.0, True, words))
        elif whole or (each is not None and each.whole):
            least, most = np.ceil(low[first] - 1e-9), np.floor(high[first] + 1e-9)
            found.append(Coordinate(name, float(least), float(most), whole=True))
        else:
            found.append(Coordinate(name, float(low[first]), float(high[first])))
    return found


def _names(policy: LinearPolicy, given: Sequence[str] | None, own: Sequence[str]) -> list[str]:
    """Names of the coordinates: given, the environment's or the log's, known, or numbers."""
    size = input_size(policy.observation_space)
    logged = () if policy.inputs is None else [each.name for each in policy.inputs.inputs]
    size = len(logged) or size
    if given is not None and len(given) != size:
        raise ValueError(f"names={','.join(given)} must be {size}, one for each dimension")
    for names in (given, own, logged, _known_names(policy)[0]):
        if names is not None and len(names) == size:
            return [*map(str, names)]
    return [f"observation {i}" for i in range(size)] if size > 1 else ["observation"]


def _action_names(policy: LinearPolicy) -> list[str]:
    for names in (policy.action_names, _known_names(policy)[1]):
        if len(names) == policy.actions:
            return [*names]
    if policy.action_set.has_between:
        return [str(np.ravel(action).round(3).tolist()) for action in policy.action_set.listed]
    return [f"action {i}" for i in range(policy.actions)]


def _known_names(policy: LinearPolicy) -> tuple[list[str], list[str]]:
    """Names of the dimensions and actions of a known environment; empty for any other."""
    identifier = "" if policy.environment is None else str(policy.environment["id"])
    known = next((n for part, n in _NAMES.items() if part in identifier), ("", ""))
    dimensions, actions = (list(filter(None, names.split(", "))) for names in known)
    return dimensions, actions


def _grid(space: gym.Space[Any], env: gym.Env[Any, Any] | None, given: Grid | None) -> Grid | None:
    """Rows and columns, if the states are the cells of a grid."""
    if given is not None:
        if not isinstance(space, gym.spaces.Discrete) or math.prod(given) != space.n:
            raise ValueError(
                f"grid={given[0]}x{given[1]} does not fit the observations, {space}: a grid needs "
                "as many cells as there are discrete states"
            )
        return given
    if env is None or not isinstance(space, gym.spaces.Discrete):
        return None
    inner: Any = env.unwrapped
    for shape in (np.shape(getattr(inner, "desc", ())), getattr(inner, "shape", ())):
        if len(shape) == 2 and math.prod(shape) == space.n and min(shape) > 1:
            return int(shape[0]), int(shape[1])
    return None
