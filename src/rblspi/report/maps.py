"""Maps of value, uncertainty and policy over the observations.

`compute` evaluates the agent on grids, `draw` makes a figure of the numbers. Observations of one
number give a curve for every action; of two numbers a map; of more, a slice for every pair of
dimensions, through a point that the agent visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from rblspi import check
from rblspi.agents.evaluation import spare_environment
from rblspi.datasets.logged import LoggedEnvironment
from rblspi.features.bounds import bounds, input_size
from rblspi.report import ink

if TYPE_CHECKING:
    from rblspi.agents import Agent

Array = NDArray[np.float64]

#: what an environment calls its observations and actions, by a part of its id
_NAMES: dict[str, tuple[str, str]] = {
    "MountainCar": ("position, velocity", "push left, coast, push right"),
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
    "LunarLander": (
        "x, y, x velocity, y velocity, angle, angular velocity, left leg, right leg",
        "coast, fire left, fire main, fire right",
    ),
    "FrozenLake": ("state", "left, down, right, up"),
    "CliffWalking": ("state", "up, right, down, left"),
    "Taxi": ("state", "south, north, east, west, pick up, drop off"),
}
_COLOURS = (ink.BLUE, "#F0E4C2", ink.VERMILLION, ink.GREEN, ink.PURPLE, ink.SKY, ink.ORANGE)
_TWO_COLOURS = (ink.BLUE, ink.ORANGE)
#: slices of more dimensions than these are too many to look at
_MOST_PAIRS = 15
_DEVIATION = "its standard deviation"


class Slice(NamedTuple):
    """The agent's answers on a grid over one or two dimensions of the observation.

    Attributes
    ----------
    dimensions : tuple of int
        Which ones; the first is drawn from left to right.
    axes : tuple of ndarray
        The points along them.
    mean : ndarray, shape (points of the last, ..., points of the first, actions)
        Action values.
    std : ndarray or None
        Their standard deviations, in the same shape.
    """

    dimensions: tuple[int, ...]
    axes: tuple[Array, ...]
    mean: Array
    std: Array | None

    @property
    def policy(self) -> NDArray[np.int64]:
        """The best action by the mean."""
        best: NDArray[np.int64] = np.argmax(self.mean, axis=-1)
        return best

    @property
    def value(self) -> Array:
        """The value of the best action."""
        largest: Array = self.mean.max(axis=-1)
        return largest

    @property
    def uncertainty(self) -> Array | None:
        """Standard deviation of the value of the best action."""
        if self.std is None:
            return None
        return np.take_along_axis(self.std, self.policy[..., None], axis=-1)[..., 0]


class Maps(NamedTuple):
    """Slices, and what is needed to draw them.

    Attributes
    ----------
    slices : list of Slice
    point : ndarray, shape (d,)
        The observation that all slices go through.
    path : ndarray, shape (steps, d)
        Observations of one episode of the learnt policy.
    names, actions : list of str
        Of the dimensions and of the actions.
    discrete : bool
        Whether observations are whole numbers.
    """

    slices: list[Slice]
    point: Array
    path: Array
    names: list[str]
    actions: list[str]
    discrete: bool


def compute(
    agent: Agent,
    *,
    resolution: int = 121,
    at: Sequence[float] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    low: float | Sequence[float] | None = None,
    high: float | Sequence[float] | None = None,
    seed: int = 0,
) -> Maps:
    """Evaluate an agent on grids over its observations.

    Parameters
    ----------
    agent : Agent
    resolution : int
        Points along each dimension.
    at : sequence of float, optional
        The observation that slices go through: the median of a few episodes unless given.
    pairs : sequence of (int, int), optional
        Dimensions to draw against each other: all pairs unless given.
    low, high : float or sequence of float, optional
        Bounds of the maps: those of the basis, else of the space, else of what is visited.
    seed : int
        Of the episodes that are played.
    """
    check.count("resolution", resolution, least=2)
    space = agent.env.observation_space
    size = input_size(space)
    episodes = _visited(agent, seed)
    seen = np.concatenate(episodes) if episodes else np.zeros((1, size))
    lower, upper = _limits(agent, seen, low, high)
    point = np.asarray(at, dtype=np.float64) if at is not None else np.median(seen, axis=0)
    if at is None and not episodes:
        point = (lower + upper) / 2
    if point.shape != (size,):
        raise ValueError(f"at={at} must have {size} numbers, one for each dimension")
    discrete = not isinstance(space, gym.spaces.Box)
    if discrete:
        point = np.round(point)
    axes = [
        np.arange(a, b + 1) if discrete else np.linspace(a, b, resolution)
        for a, b in zip(lower, upper, strict=True)
    ]
    slices = [_slice(agent, dims, axes, point) for dims in _dimensions(size, pairs)]
    names, actions = _names(agent.env, size, agent.actions)
    path = episodes[0] if episodes else np.empty((0, size))
    return Maps(slices, point, path, names, actions, discrete)


def _dimensions(size: int, pairs: Sequence[tuple[int, int]] | None) -> list[tuple[int, ...]]:
    if size == 1:
        return [(0,)]
    if pairs is None:
        chosen = list(combinations(range(size), 2))
        if len(chosen) > _MOST_PAIRS:
            chosen = [(i, i + 1) for i in range(0, min(size - 1, 2 * _MOST_PAIRS), 2)]
        return list(chosen)
    for pair in pairs:
        if len(set(pair)) != 2 or not all(0 <= d < size for d in pair):
            raise ValueError(f"pairs has {pair}: give two different dimensions below {size}")
    return [tuple(pair) for pair in pairs]


def _slice(agent: Agent, dims: tuple[int, ...], axes: list[Array], point: Array) -> Slice:
    own = tuple(axes[d] for d in dims)
    grid = np.meshgrid(*own)  # the first dimension goes along the last axis
    rows = np.tile(point, (grid[0].size, 1))
    for d, values in zip(dims, grid, strict=True):
        rows[:, d] = values.ravel()
    shape = agent.env.observation_space.shape or ()
    answers = agent.action_values(rows.reshape(-1, *shape))
    form = (*grid[0].shape, agent.actions)
    std = None if answers.std is None else answers.std.reshape(form)
    return Slice(dims, own, answers.mean.reshape(form), std)


def _visited(agent: Agent, seed: int, episodes: int = 5, longest: int = 1000) -> list[Array]:
    """Observations of a few episodes of the learnt policy; none where only logs are known."""
    if isinstance(agent.env.unwrapped, LoggedEnvironment):
        return []
    found = []
    with spare_environment(agent) as env:
        for episode in range(episodes):
            observation, _ = env.reset(seed=seed if episode == 0 else None)
            path = [observation]
            ended = False
            while not ended and len(path) < longest:
                action, _ = agent.predict(observation, deterministic=True)
                observation, _, terminated, truncated, _ = env.step(action)
                path.append(observation)
                ended = terminated or truncated
            found.append(np.array(path, dtype=np.float64).reshape(len(path), -1))
    return found


def _limits(agent: Agent, seen: Array, low: Any, high: Any) -> tuple[Array, Array]:
    """Bounds that were given, of the basis, of the space, or of what was seen."""
    low = getattr(agent.basis, "low", None) if low is None else low
    high = getattr(agent.basis, "high", None) if high is None else high
    space = agent.env.observation_space
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


def _names(env: gym.Env[Any, Any], size: int, actions: int) -> tuple[list[str], list[str]]:
    """An environment's own names in its metadata, names we know, or numbers."""
    identifier = "" if env.spec is None else env.spec.id
    known = next((n for part, n in _NAMES.items() if part in identifier), ("", ""))
    observed = list(env.metadata.get("observation_names") or filter(None, known[0].split(", ")))
    acted = list(env.metadata.get("action_names") or filter(None, known[1].split(", ")))
    if len(observed) != size:
        observed = [f"observation {i}" for i in range(size)]
    if len(acted) != actions:
        acted = [f"action {i}" for i in range(actions)]
    return observed, acted


# Ink ------------------------------------------------------------------------------------------


def draw(maps: Maps, path: bool = True) -> Figure:
    """Draw the maps: a row for every slice, with value, uncertainty and policy.

    Parameters
    ----------
    maps : Maps
    path : bool
        Whether to draw one episode over maps that show the whole observation.
    """
    if len(maps.slices[0].dimensions) == 1:
        return _draw_line(maps)
    rows = len(maps.slices)
    columns = 2 if maps.slices[0].std is None else 3
    figure = Figure(figsize=(3.5 * columns, 2.75 * rows + 0.35), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    colours = _action_colours(len(maps.actions))
    whole = len(maps.point) == 2
    for row, one in zip(panels, maps.slices, strict=True):
        _draw_values(figure, row[0], one.value, one, "viridis", "value of the best action")
        if one.uncertainty is not None:
            _draw_values(figure, row[1], one.uncertainty, one, "magma", _DEVIATION)
        _draw_policy(row[-1], one, colours)
        for panel in row:
            _label(panel, maps, one)
            if path and whole:
                _draw_path(panel, maps.path)
    for panel, title in zip(
        panels[0],
        ["Value", "Uncertainty", "Policy"] if columns == 3 else ["Value", "Policy"],
        strict=True,
    ):
        panel.set_title(title, fontweight="bold")
    patches = [Patch(color=c, label=name) for c, name in zip(colours, maps.actions, strict=True)]
    figure.legend(handles=patches, loc="outside lower right", ncols=min(len(patches), 6))
    if not whole:
        given = ", ".join(f"{n} {v:.3g}" for n, v in zip(maps.names, maps.point, strict=True))
        figure.suptitle(f"slices through {given}", fontsize=8, color="#555555")
    return figure


def _action_colours(count: int) -> list[str]:
    colours = _TWO_COLOURS if count == 2 else _COLOURS
    return [colours[i % len(colours)] for i in range(count)]


def _draw_values(
    figure: Figure, panel: Axes, values: Array, one: Slice, colours: str, label: str
) -> None:
    # Deviations differ by orders of magnitude between places that were visited and not.
    wide = bool(values.min() > 0) and label == _DEVIATION and values.max() > 20 * values.min()
    norm = LogNorm(values.min(), values.max()) if wide else None
    mesh = panel.pcolormesh(
        *one.axes, values, cmap=colours, norm=norm, shading="nearest", rasterized=True
    )
    if min(values.shape) > 20 and np.ptp(values) > 0:
        levels = np.geomspace(values.min(), values.max(), 9)[1:-1] if wide else 8
        panel.contour(
            *one.axes,
            values,
            levels=levels,
            colors="white",
            linewidths=0.4,
            linestyles="solid",
            alpha=0.6,
        )
    bar = figure.colorbar(mesh, ax=panel, pad=0.02, fraction=0.06)
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7.5)
    if wide:
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        bar.ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.outline.set_visible(False)


def _draw_policy(panel: Axes, one: Slice, colours: list[str]) -> None:
    norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
    panel.pcolormesh(
        *one.axes,
        one.policy,
        cmap=ListedColormap(colours),
        norm=norm,
        shading="nearest",
        rasterized=True,
    )


def _label(panel: Axes, maps: Maps, one: Slice) -> None:
    first, second = one.dimensions
    panel.set_xlabel(maps.names[first])
    panel.set_ylabel(maps.names[second])
    panel.grid(False)
    panel.margins(0)


def _draw_path(panel: Axes, path: Array) -> None:
    x, y = path.T
    panel.plot(x, y, color="black", linewidth=2.2, alpha=0.75)
    panel.plot(x, y, color="white", linewidth=0.9)
    panel.plot(x[:1], y[:1], "o", color="white", mec="black", markersize=5, clip_on=False)
    panel.plot(x[-1:], y[-1:], "s", color="white", mec="black", markersize=5, clip_on=False)


def _draw_line(maps: Maps) -> Figure:
    """Draw action values over the one dimension there is, with bands of two deviations."""
    (one,) = maps.slices
    (points,) = one.axes
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
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
    norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
    strip.pcolormesh(edges, [0, 1], one.policy[None], cmap=ListedColormap(colours), norm=norm)
    strip.set_yticks([])
    strip.set_ylabel("policy", rotation=0, ha="right", va="center")
    strip.set_xlabel(maps.names[0])
    strip.grid(False)
    panel.margins(x=0)
    strip.xaxis.set_major_locator(MaxNLocator(integer=maps.discrete))
    return figure
