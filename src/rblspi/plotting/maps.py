"""Maps of value, uncertainty and policy over the observations.

`compute` evaluates a policy on grids, and `draw` makes a figure of the numbers. One-dimensional
observations give a curve for each action, two-dimensional ones a map. Observations of more
dimensions give a slice for each pair of dimensions, through a point that the policy visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, cycle, islice
from textwrap import wrap
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter

from rblspi.core import check
from rblspi.core.types import Array, Integers
from rblspi.environments.vectors import as_vector, vector_space
from rblspi.features.bounds import bounds, input_size, observation_shape
from rblspi.plotting.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.evaluate import (
    Actor,
    environment_for,
    evaluated_policy_of,
    greedy_act,
    policy_of,
)
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
_COLOURS = (BLUE, "#F0E4C2", VERMILLION, GREEN, PURPLE, SKY, ORANGE)
_TWO_COLOURS = (BLUE, ORANGE)
#: the largest number of slices in one figure
_MOST_PAIRS = 15
#: number and largest length of the episodes that show where the policy goes
_EPISODES, _LONGEST = 5, 1000


class Slice(NamedTuple):
    """Action values on a grid over one or two dimensions of the observation."""

    dimensions: tuple[int, ...]  # of the grid; the first is drawn from left to right
    axes: tuple[Array, ...]  # the grid points along each of them
    mean: Array  # action values, shape (points of the last, ..., points of the first, actions)
    std: Array | None  # their standard deviations, in the same shape
    policy: Integers  # the actions that the policy takes

    @property
    def value(self) -> Array:
        """The value of the action that the policy takes."""
        return np.take_along_axis(self.mean, self.policy[..., None], axis=-1)[..., 0]

    @property
    def uncertainty(self) -> Array | None:
        """Standard deviation of the value of the action that the policy takes."""
        if self.std is None:
            return None
        return np.take_along_axis(self.std, self.policy[..., None], axis=-1)[..., 0]


class Maps(NamedTuple):
    """Slices, and what else is needed to draw them."""

    slices: list[Slice]
    point: Array  # the observation that all slices go through, shape (d,)
    path: Array  # observations of one episode of the policy, shape (steps, d)
    names: list[str]  # of the dimensions
    actions: list[str]  # their names
    discrete: bool  # whether observations are whole numbers


def compute(
    actor: Actor,
    env: gym.Env[Any, Any] | str | None = None,
    *,
    resolution: int = 121,
    at: Sequence[float] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    low: float | Sequence[float] | None = None,
    high: float | Sequence[float] | None = None,
    seed: int = 0,
) -> Maps:
    """Evaluate a policy on grids over its observations.

    Parameters
    ----------
    actor : Agent or LinearPolicy
    env : gymnasium.Env or str, optional
        Where the policy acts for a few episodes, as for `rblspi.evaluate`. A policy without an
        environment is shown without episodes.
    resolution : int
        Number of grid points along each dimension.
    at : sequence of float, optional
        The observation that all slices go through; by default the median over a few episodes.
    pairs : sequence of (int, int), optional
        Dimensions to draw against each other; by default all pairs.
    low, high : float or sequence of float, optional
        Bounds of the maps; by default those of the basis, of the observation space, or of the
        observations in a few episodes, whichever exist first.
    seed : int
        Seed of the episodes.
    """
    check.count("resolution", resolution, least=2)
    # For thousands of states, the mean error of the basis stands for that of every state.
    policy = replace(evaluated_policy_of(actor), second=None)
    size = input_size(policy.observation_space)
    episodes = _visited(actor, env, seed)
    seen = np.concatenate(episodes) if episodes else np.zeros((1, size))
    lower, upper = _limits(policy, seen, low, high)
    middle = np.median(seen, axis=0) if episodes else (lower + upper) / 2
    point = middle if at is None else np.asarray(at, dtype=np.float64)
    if point.shape != (size,):
        raise ValueError(f"at={at} must have {size} numbers, one for each dimension")
    discrete = not isinstance(vector_space(policy.observation_space), gym.spaces.Box)
    if discrete:
        point = np.round(point)
    axes = [
        np.arange(a, b + 1) if discrete else np.linspace(a, b, resolution)
        for a, b in zip(lower, upper, strict=True)
    ]
    slices = [_slice(policy, dims, axes, point) for dims in _dimensions(size, pairs)]
    names, actions = _names(actor, size)
    path = episodes[0] if episodes else np.empty((0, size))
    return Maps(slices, point, path, names, actions, discrete)


def _dimensions(size: int, pairs: Sequence[tuple[int, int]] | None) -> list[tuple[int, ...]]:
    if size == 1:
        return [(0,)]
    if pairs is None:
        every = list(combinations(range(size), 2))
        neighbours = [(i, i + 1) for i in range(0, min(size - 1, 2 * _MOST_PAIRS), 2)]
        return [*(every if len(every) <= _MOST_PAIRS else neighbours)]
    for pair in pairs:
        if len(set(pair)) != 2 or not all(0 <= d < size for d in pair):
            raise ValueError(f"pairs has {pair}: give two different dimensions below {size}")
    return [tuple(pair) for pair in pairs]


def _slice(policy: LinearPolicy, dims: tuple[int, ...], axes: list[Array], point: Array) -> Slice:
    own = tuple(axes[d] for d in dims)
    grid = np.meshgrid(*own)  # the first dimension goes along the last axis
    rows = np.tile(point, (grid[0].size, 1))
    for d, values in zip(dims, grid, strict=True):
        rows[:, d] = values.ravel()
    observations = rows.reshape(-1, *observation_shape(policy.observation_space))
    answers, chosen = policy.action_values(observations), policy(observations)
    form = (*grid[0].shape, policy.actions)
    std = None if answers.std is None else answers.std.reshape(form)
    return Slice(dims, own, answers.mean.reshape(form), std, chosen.reshape(grid[0].shape))


def _visited(actor: Actor, env: gym.Env[Any, Any] | str | None, seed: int) -> list[Array]:
    """Observations in a few episodes of the policy; none if no environment is known."""
    if env is None and isinstance(actor, LinearPolicy) and actor.environment is None:
        return []
    act = greedy_act(policy_of(actor))
    with environment_for(actor, env) as environment:
        played = play(environment, act, _EPISODES, seed=seed, longest=_LONGEST - 1)
        paths = [[s.observation for s in steps] + [steps[-1].next_observation] for steps in played]
        space = environment.observation_space
    return [np.array([as_vector(space, observation) for observation in path]) for path in paths]


def _limits(policy: LinearPolicy, seen: Array, low: Any, high: Any) -> tuple[Array, Array]:
    """Bounds of the maps: given, of the basis, of the space, or of the observations seen."""
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
        margin = 0.05 * np.ptp(seen, axis=0) + 1e-6
        own_low, own_high = space.low.ravel(), space.high.ravel()
        return (
            np.where(np.abs(own_low) < 1e30, own_low, seen.min(axis=0) - margin),
            np.where(np.abs(own_high) < 1e30, own_high, seen.max(axis=0) + margin),
        )


def _names(actor: Actor, size: int) -> tuple[list[str], list[str]]:
    """Names of dimensions and actions: the environment's own, known ones, or numbers."""
    policy: LinearPolicy = policy_of(actor)
    identifier = "" if policy.environment is None else str(policy.environment["id"])
    known = next((n for part, n in _NAMES.items() if part in identifier), ("", ""))
    metadata = actor.env.metadata if hasattr(actor, "env") else {}
    observed = list(metadata.get("observation_names") or filter(None, known[0].split(", ")))
    acted = list(policy.action_names or filter(None, known[1].split(", ")))
    if len(observed) != size:
        observed = [f"observation {i}" for i in range(size)]
    if len(acted) != policy.actions:
        acted = [f"action {i}" for i in range(policy.actions)]
    return observed, acted


# Drawing ------------------------------------------------------------------------------------------


def draw(maps: Maps, path: bool = True) -> Drawing:
    """Draw a row of maps for each slice: value, uncertainty and policy.

    Parameters
    ----------
    maps : Maps
    path : bool
        Whether to draw an episode over the maps of two-dimensional observations.
    """
    if len(maps.slices[0].dimensions) == 1:
        return _draw_line(maps)
    titles = (
        ["Value", "Policy"] if maps.slices[0].std is None else ["Value", "Uncertainty", "Policy"]
    )
    rows, columns = len(maps.slices), len(titles)
    names = len(maps.actions)
    ncols = max(1, min(names, 6, 45 * columns // (max(map(len, maps.actions)) + 6)))
    height = 2.75 * rows + 0.35 + 0.18 * ((names - 1) // ncols)  # more for more rows of names
    figure = Drawing(figsize=(3.5 * columns, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    colours = _action_colours(len(maps.actions))
    whole = len(maps.point) == 2
    for row, one in zip(panels, maps.slices, strict=True):
        _draw_values(figure, row[0], one, one.value, "viridis", "value of the best action")
        if one.uncertainty is not None:
            _draw_values(figure, row[1], one, one.uncertainty, "magma", "its standard deviation")
        row[-1].pcolormesh(
            *one.axes, one.policy, **_by_action(colours), shading="nearest", rasterized=True
        )
        for panel in row:
            panel.set(xlabel=maps.names[one.dimensions[0]], ylabel=maps.names[one.dimensions[1]])
            panel.grid(False)
            panel.margins(0)
            if path and whole and len(maps.path):
                _draw_path(panel, maps.path)
    for panel, title in zip(panels[0], titles, strict=True):
        panel.set_title(title, fontweight="bold")
    patches = [Patch(color=c, label=name) for c, name in zip(colours, maps.actions, strict=True)]
    figure.legend(handles=patches, loc="outside lower right", ncols=ncols)
    if not whole:
        given = ", ".join(f"{n} = {v:.3g}" for n, v in zip(maps.names, maps.point, strict=True))
        lines = wrap(f"slices through {given}", 50 * columns)
        figure.suptitle("\n".join(lines), fontsize=8, color="#555555")
    return figure


def _action_colours(count: int) -> list[str]:
    return list(islice(cycle(_TWO_COLOURS if count == 2 else _COLOURS), count))


def _by_action(colours: list[str]) -> dict[str, Any]:
    """How to draw a mesh of actions."""
    norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
    return {"cmap": ListedColormap(colours), "norm": norm}


def _draw_values(
    figure: Drawing, panel: Axes, one: Slice, values: Array, colours: str, label: str
) -> None:
    # Standard deviations differ by orders of magnitude between visited and unvisited places.
    wide = colours == "magma" and bool(0 < 20 * values.min() < values.max())
    norm = LogNorm(values.min(), values.max()) if wide else None
    mesh = panel.pcolormesh(
        *one.axes, values, cmap=colours, norm=norm, shading="nearest", rasterized=True
    )
    if min(values.shape) > 20 and np.ptp(values) > 0:
        levels = np.geomspace(values.min(), values.max(), 9)[1:-1] if wide else 8
        panel.contour(
            *one.axes, values, levels, colors="white", linewidths=0.4, linestyles="solid", alpha=0.6
        )
    bar = figure.colorbar(mesh, ax=panel, pad=0.02, fraction=0.06)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7.5)
    if wide:
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        bar.ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.outline.set_visible(False)


def _draw_path(panel: Axes, path: Array) -> None:
    x, y = path.T
    panel.plot(x, y, color="black", linewidth=2.2, alpha=0.75)
    panel.plot(x, y, color="white", linewidth=0.9)
    panel.plot(x[:1], y[:1], "o", color="white", mec="black", markersize=5, clip_on=False)
    panel.plot(x[-1:], y[-1:], "s", color="white", mec="black", markersize=5, clip_on=False)


def _draw_line(maps: Maps) -> Drawing:
    """Draw action values over a single dimension, with bands of two standard deviations."""
    (one,) = maps.slices
    (points,) = one.axes
    figure = Drawing(figsize=(6.4, 3.6), layout="constrained")
    panel, strip = figure.subplots(2, 1, sharex=True, height_ratios=(9, 1))
    colours = _action_colours(len(maps.actions))
    marker = "o" if maps.discrete and len(points) <= 60 else ""
    for a, (colour, name) in enumerate(zip(colours, maps.actions, strict=True)):
        mean = one.mean[..., a]
        panel.plot(points, mean, color=colour, label=name, marker=marker, markersize=3.5)
        if one.std is not None:
            reach = 2.0 * one.std[..., a]
            panel.fill_between(points, mean - reach, mean + reach, color=colour, alpha=0.2, lw=0)
    panel.set_ylabel("action value" if one.std is None else "action value ± 2 std")
    panel.legend()
    half = (points[1] - points[0]) / 2
    edges = np.append(points - half, points[-1] + half)
    strip.pcolormesh(edges, [0, 1], one.policy[None], **_by_action(colours))
    strip.set_yticks([])
    strip.set_ylabel("policy", rotation=0, ha="right", va="center")
    strip.set_xlabel(maps.names[0])
    strip.grid(False)
    panel.margins(x=0)
    strip.xaxis.set_major_locator(MaxNLocator(integer=maps.discrete))
    return figure
