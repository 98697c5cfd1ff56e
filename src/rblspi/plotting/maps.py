"""Maps of value, uncertainty and policy over the observations.

`compute` evaluates a policy on grids, and `draw` makes a figure of the numbers. One-dimensional
observations give a curve for each action, two-dimensional ones and the cells of a grid a map.
Observations of more dimensions give a slice for each pair of dimensions, through a point that the
policy visits. Where the data have hardly narrowed what was known beforehand, a map is grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, cycle, islice
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter

from rblspi.core import check
from rblspi.core.types import Array, Integers, Mask, Matrix
from rblspi.plotting.domain import Coordinate, Domain, find
from rblspi.plotting.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.evaluate import Actor, policy_of

_COLOURS = (BLUE, "#F0E4C2", VERMILLION, GREEN, PURPLE, SKY, ORANGE)
_TWO_COLOURS = (BLUE, ORANGE)
_UNKNOWN = "#BDBDBD"
_ARROWS = {"left": "←", "right": "→", "up": "↑", "down": "↓"}
_ARROWS |= {"west": "←", "east": "→", "north": "↑", "south": "↓"}
#: cells along the longer side of a grid up to which arrows can be read
_MOST_ARROWS = 20
#: the largest number of slices in one figure
_MOST_PAIRS = 15


class Answers(NamedTuple):
    """What a policy says about some observations, N of them."""

    mean: Matrix  # action values, shape (N, actions)
    std: Matrix | None  # their standard deviations
    policy: Integers  # the actions that the policy takes, shape (N,)
    unknown: Mask | None  # where the data say little about the value of that action


def ask(policy: LinearPolicy, domain: Domain, coordinates: Matrix) -> Answers:
    """What actions are worth at some coordinates, shape (N, d), and what the policy does there."""
    observations = domain.space.observations_at(coordinates)
    values, chosen = policy.action_values(observations), policy(observations)
    return Answers(values.mean, values.std, chosen, policy.little_known(values, chosen))


class Slice(NamedTuple):
    """Action values on a grid over one or two coordinates of the domain."""

    dimensions: tuple[int, ...]  # places of these coordinates; the first goes from left to right
    axes: tuple[Array, ...]  # the grid points along each of them
    mean: Array  # action values, shape (points of the last, ..., points of the first, actions)
    std: Array | None  # their standard deviations, in the same shape
    policy: Integers  # the actions that the policy takes
    unknown: Mask | None  # where the data say little about the value of that action

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

    def known_range(self, numbers: Array) -> tuple[float, float]:
        """The least and greatest of these numbers where the data say something, apart if equal.

        Elsewhere values are extrapolated and may be anything.
        """
        unknown = self.unknown
        known = numbers if unknown is None or unknown.all() else numbers[~unknown]
        low, high = float(known.min()), float(known.max())
        margin = 0.05 * abs(low) or 0.5
        flat = high - low < 1e-9 * abs(low) or high == low
        return (low - margin, high + margin) if flat else (low, high)


class Maps(NamedTuple):
    """Slices, and what they are slices of."""

    slices: list[Slice]
    domain: Domain


def compute(actor: Actor, domain: Domain | None = None, *, resolution: int = 121) -> Maps:
    """Evaluate a policy on grids over its observations.

    Parameters
    ----------
    actor : Agent or LinearPolicy
    domain : Domain, optional
        What `rblspi.plotting.domain.find` has found; by default it looks now.
    resolution : int
        Number of grid points along each dimension.
    """
    check.count("resolution", resolution, least=2)
    policy = policy_of(actor)
    domain = domain or find(actor)
    axes = [coordinate.points(resolution) for coordinate in domain.coordinates]
    slices = [
        slice_at(policy, domain, dims, [axes[d] for d in dims]) for dims in dimensions(len(axes))
    ]
    return Maps(slices, domain)


def dimensions(size: int) -> list[tuple[int, ...]]:
    """What to draw of so many coordinates: the only one, or all pairs up to a number of slices."""
    if size == 1:
        return [(0,)]
    every = list(combinations(range(size), 2))
    neighbours = [(i, i + 1) for i in range(0, min(size - 1, 2 * _MOST_PAIRS), 2)]
    return [*(every if len(every) <= _MOST_PAIRS else neighbours)]


def slice_at(
    policy: LinearPolicy, domain: Domain, dims: tuple[int, ...], axes: Sequence[Array]
) -> Slice:
    """The slice through the point of the domain with these points along the axes."""
    grid = np.meshgrid(*axes)  # the first axis is the last one of the arrays
    rows = np.tile(domain.point, (grid[0].size, 1))
    for d, points in zip(dims, grid, strict=True):
        rows[:, d] = points.ravel()
    form = grid[0].shape
    mean, std, chosen, unknown = ask(policy, domain, rows)
    return Slice(
        *(dims, tuple(axes), mean.reshape(*form, -1)),
        None if std is None else std.reshape(*form, -1),
        chosen.reshape(form),
        None if unknown is None else unknown.reshape(form),
    )


# Drawing ------------------------------------------------------------------------------------------


def draw(maps: Maps) -> Drawing:
    """Draw a row of maps for each slice: value, uncertainty and policy.

    An episode is drawn over the maps of two-dimensional observations.
    """
    domain = maps.domain
    if len(domain.names) == 1:
        return _draw_line(maps)
    titles = (
        ["Value", "Policy"] if maps.slices[0].std is None else ["Value", "Uncertainty", "Policy"]
    )
    rows, columns = len(maps.slices), len(titles)
    handles = _legend(domain.actions, any(one.unknown is not None for one in maps.slices))
    longest = max(len(str(patch.get_label())) for patch in handles)
    ncols = max(1, min(len(handles), 6, 45 * columns // (longest + 6)))
    height = 2.75 * rows + 0.35 + 0.18 * ((len(handles) - 1) // ncols)  # more for more names
    figure = Drawing(figsize=(3.5 * columns, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    whole = len(domain.names) == 2
    for row, one in zip(panels, maps.slices, strict=True):
        _draw_values(figure, row[0], one, one.value, "viridis", "value of the best action")
        if one.uncertainty is not None:
            _draw_values(figure, row[1], one, one.uncertainty, "magma", "its standard deviation")
        _draw_policy(row[-1], one, domain)
        for panel in row:
            _draw_unknown(panel, one)
            for axis, d in zip((panel.xaxis, panel.yaxis), one.dimensions, strict=True):
                _label(axis, domain.coordinates[d])
            panel.grid(False)
            panel.margins(0)
            if domain.space.grid is not None:
                panel.set_aspect("equal")
                panel.invert_yaxis()
            if whole and domain.episodes:
                _draw_path(panel, domain.episodes[0])
    for panel, title in zip(panels[0], titles, strict=True):
        panel.set_title(title, fontweight="bold")
    figure.legend(handles=handles, loc="outside lower right", ncols=ncols)
    if not whole:
        pairs = zip(domain.coordinates, domain.point, strict=True)
        given = ", ".join(f"{each.name} = {each.text(value)}" for each, value in pairs)
        lines = wrap(f"slices through {given}", 50 * columns)
        figure.suptitle("\n".join(lines), fontsize=8, color="#555555")
    return figure


def action_colours(count: int) -> list[str]:
    """A colour for each action."""
    return list(islice(cycle(_TWO_COLOURS if count == 2 else _COLOURS), count))


def arrow(action: str) -> str:
    """An arrow for an action that is named by a direction; empty for others."""
    return _ARROWS.get(action, "")


def _legend(actions: Sequence[str], unknown: bool) -> list[Patch]:
    colours = action_colours(len(actions))
    patches = [Patch(color=c, label=name) for c, name in zip(colours, actions, strict=True)]
    return [*patches, Patch(color=_UNKNOWN, label="the data say little")] if unknown else patches


def _by_action(colours: list[str]) -> dict[str, Any]:
    """How to draw a mesh of actions."""
    norm = BoundaryNorm(np.arange(len(colours) + 1) - 0.5, len(colours))
    return {"cmap": ListedColormap(colours), "norm": norm}


def _draw_policy(panel: Axes, one: Slice, domain: Domain) -> None:
    colours = action_colours(len(domain.actions))
    panel.pcolormesh(
        *one.axes, one.policy, **_by_action(colours), shading="nearest", rasterized=True
    )
    if domain.space.grid is not None and max(domain.space.grid) <= _MOST_ARROWS:
        for (row, column), action in np.ndenumerate(one.policy):
            text = arrow(domain.actions[action])
            panel.text(column, row, text, ha="center", va="center", fontsize=9)


def _draw_unknown(panel: Axes, one: Slice) -> None:
    """A grey veil where the data say little."""
    if one.unknown is not None and one.unknown.any():
        veil = np.ma.masked_where(~one.unknown, np.ones(one.unknown.shape))
        grey = ListedColormap([_UNKNOWN])
        panel.pcolormesh(*one.axes, veil, cmap=grey, shading="nearest", alpha=0.8, rasterized=True)


def _label(axis: Axis, coordinate: Coordinate) -> None:
    axis.set_label_text(coordinate.name)
    if coordinate.words:
        axis.set_ticks(range(len(coordinate.words)), coordinate.words)
    elif coordinate.whole:
        axis.set_major_locator(MaxNLocator(integer=True))


def _draw_values(
    figure: Drawing, panel: Axes, one: Slice, values: Array, colours: str, label: str
) -> None:
    low, high = one.known_range(values)
    # Standard deviations differ by orders of magnitude between visited and unvisited places.
    wide = colours == "magma" and bool(0 < 20 * low < high)
    norm = LogNorm(low, high) if wide else Normalize(low, high)
    mesh = panel.pcolormesh(
        *one.axes, values, cmap=colours, norm=norm, shading="nearest", rasterized=True
    )
    levels = (np.geomspace if wide else np.linspace)(low, high, 9)[1:-1]
    levels = levels[(levels > values.min()) & (levels < values.max())]
    if min(values.shape) > 20 and len(levels):
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
    """An episode as a thin line, through which the map can be seen."""
    x, y = path.T
    panel.plot(x, y, color="white", linewidth=0.7, alpha=0.8)
    for place, marker in ((0, "o"), (-1, "s")):
        at = ([x[place]], [y[place]])
        panel.plot(*at, marker, color="white", mec="black", mew=0.8, markersize=4, clip_on=False)


def _draw_line(maps: Maps) -> Drawing:
    """Draw action values over a single dimension, with bands of two standard deviations."""
    (one,), domain = maps
    (points,) = one.axes
    figure = Drawing(figsize=(6.4, 3.6), layout="constrained")
    panel, strip = figure.subplots(2, 1, sharex=True, height_ratios=(9, 1))
    colours = action_colours(len(domain.actions))
    coordinate = domain.coordinates[0]
    marker = "o" if coordinate.whole and len(points) <= 60 else ""
    for a, (colour, name) in enumerate(zip(colours, domain.actions, strict=True)):
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
    strip.grid(False)
    panel.margins(x=0)
    _label(strip.xaxis, coordinate)
    return figure
