"""What a policy is drawn over: the range of its observations, their names, and where they lie.

Observations are drawn by their coordinates. These are the numbers of the observation itself, or
column and row where the states are the cells of a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypedDict

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Array, Matrix, Vector
from rblspi.environments.spaces import (
    as_vector,
    input_size,
    limits,
    observation_shape,
    vector_space,
)
from rblspi.features.bounds import bounds
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.evaluate import Actor, environment_for, greedy_act, policy_of
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


class Domain(NamedTuple):
    """Where and how a policy is drawn; everything is in coordinates, d of them."""

    low: Vector  # bounds of the drawing, shape (d,)
    high: Vector
    point: Vector  # that slices go through, shape (d,)
    names: list[str]  # of the coordinates
    actions: list[str]  # their names
    whole: bool  # whether coordinates are whole numbers
    grid: Grid | None  # of the cells that are the states
    episodes: list[Matrix]  # coordinates in a few episodes of the policy, shape (steps, d) each
    data: Matrix  # of what the agent remembers having seen, shape (N, d)
    space: gym.Space[Any]  # of the observations

    def observations(self, coordinates: ArrayLike) -> NDArray[Any]:
        """The observations at some coordinates, from shape (N, d)."""
        rows = np.asarray(coordinates, dtype=np.float64)
        if self.grid is not None:
            column, row = rows.T
            first, _ = limits(self.space)
            rows = (first[0] + row * self.grid[1] + column)[:, None]
        return rows.reshape(-1, *observation_shape(self.space))


class DomainArguments(TypedDict, total=False):
    """What may be said of a domain; see `find`."""

    at: Sequence[float] | None
    low: float | Sequence[float] | None
    high: float | Sequence[float] | None
    names: Sequence[str] | None
    grid: Grid | None
    data: ArrayLike | None
    seed: int


def find(
    actor: Actor,
    env: gym.Env[Any, Any] | str | None = None,
    *,
    at: Sequence[float] | None = None,
    low: float | Sequence[float] | None = None,
    high: float | Sequence[float] | None = None,
    names: Sequence[str] | None = None,
    grid: Grid | None = None,
    data: ArrayLike | None = None,
    seed: int = 0,
) -> Domain:
    """Find what a policy is drawn over.

    Parameters
    ----------
    actor : Agent or LinearPolicy
    env : gymnasium.Env or str, optional
        Where the policy acts for a few episodes, as for `rblspi.evaluate`. A policy without an
        environment has no episodes.
    at : sequence of float, optional
        The observation that slices go through; by default the median over the episodes, or over
        the data where there are none.
    low, high : float or sequence of float, optional
        Bounds of the drawing; by default those of the basis, of the observation space, or of the
        observations in the episodes, whichever exist first.
    names : sequence of str, optional
        Names of the dimensions; by default those of the columns of a log, or those in
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
    space, size = policy.observation_space, input_size(policy.observation_space)
    nowhere = env is None and getattr(actor, "env", None) is None and policy.environment is None
    with nullcontext() if nowhere else environment_for(actor, env) as environment:
        episodes = [] if environment is None else _visited(policy, environment, seed)
        own_names = () if environment is None else environment.metadata.get("observation_names")
        grid = _grid(space, environment, grid)
    known = _remembered(actor, size) if data is None else _as_rows(data, size)
    seen = np.concatenate(episodes) if episodes else known
    lower, upper = _limits(policy, seen, low, high)
    middle = np.median(seen, axis=0) if len(seen) else (lower + upper) / 2
    point = middle if at is None else np.asarray(at, dtype=np.float64)
    if point.shape != (size,):
        raise ValueError(f"at={at} must have {size} numbers, one for each dimension")
    whole = not isinstance(vector_space(space), gym.spaces.Box)
    observed, acted = _names(policy, size, names or own_names or (), given=names is not None)
    found = Domain(
        low=lower,
        high=upper,
        point=np.round(point) if whole else point,
        names=observed,
        actions=acted,
        whole=whole,
        grid=grid,
        episodes=episodes,
        data=known,
        space=space,
    )
    return found if grid is None else _on_grid(found, grid)


def _visited(policy: LinearPolicy, env: gym.Env[Any, Any], seed: int) -> list[Matrix]:
    """Observations in a few episodes of the policy."""
    played = play(env, greedy_act(policy), _EPISODES, seed=seed, longest=_LONGEST - 1)
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


def _limits(policy: LinearPolicy, seen: Array, low: Any, high: Any) -> tuple[Vector, Vector]:
    """Bounds: given, of the basis, of the space, or of the observations seen."""
    low = getattr(policy.basis, "low", None) if low is None else low
    high = getattr(policy.basis, "high", None) if high is None else high
    space = vector_space(policy.observation_space)
    if not isinstance(space, gym.spaces.Box):
        return bounds(space)
    try:
        return bounds(space, low, high)
    except ValueError:
        if low is not None or high is not None:
            raise
        if not len(seen):
            raise
        margin = 0.05 * np.ptp(seen, axis=0) + 1e-6
        own_low, own_high = space.low.ravel(), space.high.ravel()
        return (
            np.where(np.abs(own_low) < 1e30, own_low, seen.min(axis=0) - margin),
            np.where(np.abs(own_high) < 1e30, own_high, seen.max(axis=0) + margin),
        )


def _names(
    policy: LinearPolicy, size: int, names: Sequence[str], given: bool
) -> tuple[list[str], list[str]]:
    """Names of dimensions and actions: given, the environment's or the log's, known, or numbers."""
    if given and len(names) != size:
        raise ValueError(f"names={','.join(names)} must be {size}, one for each dimension")
    identifier = "" if policy.environment is None else str(policy.environment["id"])
    known = next((n for part, n in _NAMES.items() if part in identifier), ("", ""))
    logged = () if policy.inputs is None else policy.inputs.names
    observed = list(map(str, names or logged or filter(None, known[0].split(", "))))
    acted = list(policy.action_names or filter(None, known[1].split(", ")))
    if len(observed) != size:
        observed = [f"observation {i}" for i in range(size)] if size > 1 else ["observation"]
    if len(acted) != policy.actions:
        acted = [f"action {i}" for i in range(policy.actions)]
    return observed, acted


# States that are the cells of a grid --------------------------------------------------------------


def _grid(
    space: gym.Space[Any], env: gym.Env[Any, Any] | None, given: Grid | None
) -> tuple[int, int] | None:
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


def _on_grid(domain: Domain, grid: Grid) -> Domain:
    """The same domain with column and row instead of the number of the cell."""
    first, _ = limits(domain.space)

    def cells(states: Matrix) -> Matrix:
        number = states[:, 0] - first[0]
        return np.column_stack([number % grid[1], number // grid[1]])

    return domain._replace(
        low=np.zeros(2),
        high=np.array([grid[1] - 1.0, grid[0] - 1.0]),
        point=cells(domain.point[None])[0],
        names=["column", "row"],
        episodes=[cells(path) for path in domain.episodes],
        data=cells(domain.data),
    )
