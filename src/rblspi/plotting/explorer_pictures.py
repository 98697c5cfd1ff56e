"""The pictures on the page to explore, as models of Bokeh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColorBar,
    ColumnDataSource,
    Div,
    FixedTicker,
    HoverTool,
    InlineStyleSheet,
    LinearColorMapper,
    LogColorMapper,
    Model,
    Range1d,
    Row,
)
from bokeh.plotting import figure

from rblspi.core.types import Array, Matrix, Vector
from rblspi.plotting import html
from rblspi.plotting.domain import Coordinate, Domain
from rblspi.plotting.maps import Slice, action_colours, arrow, ask
from rblspi.plotting.style import BLUE, SKY, VERMILLION
from rblspi.policies.linear import LinearPolicy

#: points along the side of a map, and along a line
SIDE, POINTS = 61, 241
#: observations that show where the data are
MOST_DATA = 1500
#: what can lie on top of a map
EPISODES, DATA, VEIL = "episodes", "data", "a grey veil where the data say little"

_WORDS = """
    * { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
    :host { font-size: 15px; line-height: 1.5; }
    h2 { font-size: 1.35rem; margin: 1.2rem 0 .4rem; }
    p { margin: 0 0 .5rem; max-width: 48rem; }
    table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
    th, td { padding: .2rem .9rem .2rem 0; text-align: left; }
    .number { text-align: right; }
    .chosen td { font-weight: 600; }
    .swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
"""
_NO_TOOLS: dict[str, Any] = {
    "sizing_mode": "stretch_width",
    "tools": "",
    "toolbar_location": None,
}


def words(text: str, name: str = "") -> Div:
    """Some HTML."""
    sheet = InlineStyleSheet(css=_WORDS)
    return Div(text=text, name=name, sizing_mode="stretch_width", stylesheets=[sheet])


def side_by_side(models: Sequence[Model]) -> Model:
    """Models beside each other, as far as there is room."""
    columns = "repeat(auto-fit, minmax(min(100%, 18rem), 1fr))"
    styles = {"display": "grid", "gap": "0.5rem 1.5rem", "grid-template-columns": columns}
    return Row(children=[*models], sizing_mode="stretch_width", styles=styles)


class Map:
    """Value of the policy's action, its standard deviation, and that action, over two coordinates.

    Parameters
    ----------
    domain : Domain
    axes : (int, int)
        Places of the coordinates that are drawn from left to right and from bottom to top.
    certain : bool
        Whether there are standard deviations.
    still : bool
        Whether Bokeh alone shows the numbers of the cell under the pointer.
    """

    def __init__(
        self, domain: Domain, axes: tuple[int, ...], certain: bool, still: bool = False
    ) -> None:
        self.domain, self.still = domain, still
        self.drawn: Any = None  # what the images depend on
        count = len(domain.actions)
        self.colours: dict[str, Any] = {"value": LinearColorMapper("Viridis256", low=0, high=1)}
        if certain:
            self.colours["std"] = LogColorMapper("Magma256", low=0.1, high=1)
        palette = action_colours(count)
        self.colours["action"] = LinearColorMapper(palette, low=-0.5, high=count - 0.5)
        self.ranges = [Range1d(0, 1), Range1d(0, 1)]
        self.cells, self.arrows, self.paths, self.ends, self.seen, self.here = (
            ColumnDataSource() for _ in range(6)
        )
        self.cells.name = "cells"
        self.layers: dict[str, list[Any]] = {name: [] for name in (EPISODES, DATA)}
        if certain:
            self.layers[VEIL] = []
        titles = ("Value of the policy's action", "Its standard deviation", "Policy")
        self.plots = [
            self._plot(name, title)
            for name, title in zip(("value", "std", "action"), titles, strict=True)
            if name in self.colours
        ]
        self.lay([EPISODES if domain.episodes else DATA, VEIL])
        self.layout = side_by_side(self.plots)
        self.turn(axes)

    def _plot(self, name: str, title: str) -> Any:
        grid = self.domain.space.grid
        plot = figure(
            name=f"map {name}",
            title=title,
            x_range=self.ranges[0],
            y_range=self.ranges[1],
            height=340,
            **_NO_TOOLS | ({} if grid else {"tools": "box_zoom,wheel_zoom,reset"}),
            active_drag=None,
            active_scroll=None,
            match_aspect=grid is not None,
        )
        if grid is None:
            plot.toolbar_location = "above"
        plot.toolbar.logo = None
        plot.grid.visible = False
        place = {"x": "x", "y": "y", "dw": "width", "dh": "height", "source": self.cells}
        image = plot.image(image=name, color_mapper=self.colours[name], **place)
        if name != "action":
            plot.add_layout(ColorBar(color_mapper=self.colours[name], width=10, padding=4), "right")
        if self.still:
            shown = [("value", "@value"), ("std", "@std"), ("action", "@name")]
            shown = [pair for pair in shown if pair[0] in self.colours]
            plot.add_tools(HoverTool(renderers=[image], tooltips=shown))
        self._add_layers(plot, place)
        if name == "action" and grid is not None and any(map(arrow, self.domain.actions)):
            centred = {"text_align": "center", "text_baseline": "middle"}
            plot.text("x", "y", "text", source=self.arrows, **centred)
        cross = {"marker": "cross", "size": 14, "color": "white", "line_width": 2}
        plot.scatter("x", "y", source=self.here, **cross)
        return plot

    def _add_layers(self, plot: Any, place: dict[str, Any]) -> None:
        if VEIL in self.layers:
            grey = LinearColorMapper(["#BDBDBD00", "#BDBDBDD0"], low=0, high=1)
            self.layers[VEIL].append(plot.image(image="unknown", color_mapper=grey, **place))
        dots = {"size": 2.5, "color": "white", "line_color": None, "alpha": 0.6}
        self.layers[DATA].append(plot.scatter("x", "y", source=self.seen, **dots))
        line = {"line_color": "white", "line_width": 0.8, "line_alpha": 0.6}
        end = {"marker": "square", "size": 6, "fill_color": "white", "line_color": "black"}
        self.layers[EPISODES] += [
            plot.multi_line("x", "y", source=self.paths, **line),
            plot.scatter("x", "y", source=self.ends, **end),
        ]

    def lay(self, names: Sequence[str]) -> None:
        """Show the layers with these names, and hide the others."""
        self.shown = [name for name in self.layers if name in names]
        for name, renderers in self.layers.items():
            for renderer in renderers:
                renderer.visible = name in names

    def turn(self, axes: tuple[int, ...]) -> None:
        """Draw over these coordinates, over the whole range of each."""
        self.axes = axes
        for k, (side, d) in enumerate(zip(self.ranges, axes, strict=True)):
            coordinate = self.domain.coordinates[d]
            edge = 0.5 if coordinate.whole else 0.0
            ends = [coordinate.low - edge, coordinate.high + edge]
            start, end = ends[::-1] if k == 1 and self.domain.space.grid else ends
            side.update(bounds=None)
            side.update(start=start, end=end, reset_start=start, reset_end=end)
            side.update(bounds=tuple(ends))
            for plot in self.plots:
                _label((plot.below, plot.left)[k][0], coordinate)
        i, j = axes
        paths = self.domain.episodes
        self.paths.data = {"x": [p[:, i] for p in paths], "y": [p[:, j] for p in paths]}
        self.ends.data = {"x": [p[-1, i] for p in paths], "y": [p[-1, j] for p in paths]}
        data = _some_data(self.domain)
        self.seen.data = {"x": data[:, i], "y": data[:, j]}

    def points(self) -> list[Vector]:
        """Where to ask for values: whole numbers, or the middles of the pixels that are shown."""
        found = []
        for side, d in zip(self.ranges, self.axes, strict=True):
            coordinate = self.domain.coordinates[d]
            half = (side.end - side.start) / SIDE / 2
            pixels = np.linspace(side.start + half, side.end - half, SIDE)
            found.append(coordinate.points(SIDE) if coordinate.whole else pixels)
        return found

    def show(self, one: Slice) -> None:
        """Show a slice at the points of this map."""
        images: dict[str, Array] = {"value": one.value}
        if one.uncertainty is not None:
            images["std"] = one.uncertainty
        for name, image in images.items():
            low, high = one.known_range(image)
            self.colours[name].update(low=low, high=high)
        unknown = np.zeros(one.policy.shape) if one.unknown is None else one.unknown.astype(float)
        images |= {"action": one.policy.astype(float), "unknown": unknown}
        cells: dict[str, list[Any]] = {name: [image] for name, image in images.items()}
        for points, start, size in zip(one.axes, "xy", ("width", "height"), strict=True):
            step = points[1] - points[0] if len(points) > 1 else 1.0
            cells |= {start: [points[0] - step / 2], size: [step * len(points)]}
        if self.still:
            cells["name"] = [[self.domain.actions[a] for a in one.policy.ravel()]]
        self.cells.data = cells
        if self.domain.space.grid is not None:
            rows, columns = np.indices(one.policy.shape)
            texts = [arrow(self.domain.actions[a]) for a in one.policy.ravel()]
            self.arrows.data = {"x": columns.ravel(), "y": rows.ravel(), "text": texts}

    def mark(self, point: Vector) -> None:
        """Mark the point."""
        self.here.data = {"x": [point[self.axes[0]]], "y": [point[self.axes[1]]]}


class Line:
    """The values of all actions over the only coordinate; the arguments are those of `Map`."""

    def __init__(
        self, domain: Domain, axes: tuple[int, ...], certain: bool, still: bool = False
    ) -> None:
        (self.coordinate,) = domain.coordinates
        self.axes = axes
        self.drawn: Any = None
        plot = figure(
            title="Action values" + " ± 2 standard deviations" * certain,
            y_axis_label="value",
            height=360,
            **_NO_TOOLS,
        )
        _label(plot.below[0], self.coordinate)
        self.sources = [ColumnDataSource() for _ in domain.actions]
        colours = action_colours(len(domain.actions))
        for source, name, colour in zip(self.sources, domain.actions, colours, strict=True):
            drawn = {"source": source, "legend_label": name}
            if not self.coordinate.whole:
                plot.varea("x", "low", "high", fill_color=colour, fill_alpha=0.2, source=source)
                plot.line("x", "mean", line_color=colour, line_width=2, **drawn)
            else:
                plot.segment("x", "low", "x", "high", line_color=colour, source=source)
                plot.scatter("x", "mean", fill_color=colour, line_color=colour, size=6, **drawn)
        plot.legend.background_fill_alpha = 0.7
        self.here = ColumnDataSource()
        plot.scatter("x", "y", source=self.here, size=10, fill_color=None, line_color="black")
        self.plots, self.layout = [plot], plot

    def points(self) -> list[Vector]:
        """Where to ask for values."""
        return [self.coordinate.points(POINTS)]

    def show(self, one: Slice) -> None:
        """Show the values at these points."""
        reach = np.zeros_like(one.mean) if one.std is None else 2.0 * one.std
        self.value = one.value
        for a, source in enumerate(self.sources):
            mean, half = one.mean[:, a], reach[:, a]
            # Neighbouring marks of the actions do not hide each other.
            shift = 0.5 * (a + 0.5) / len(self.sources) - 0.25 if self.coordinate.whole else 0.0
            x = one.axes[0] + shift
            source.data = {"x": x, "mean": mean, "low": mean - half, "high": mean + half}

    def mark(self, point: Vector) -> None:
        """Mark the point."""
        value = np.interp(point[0], self.points()[0], self.value)
        self.here.data = {"x": [point[0]], "y": [value]}


class AtPoint:
    """What every action is worth at one point: a chart with intervals, and a table."""

    def __init__(self, actions: Sequence[str]) -> None:
        self.colours = action_colours(len(actions))
        self.source, self.says = ColumnDataSource(name="values"), words("", name="words")
        self.chart = figure(
            y_range=[*actions][::-1], height=max(140, 60 + 34 * len(actions)), **_NO_TOOLS
        )
        bar = {"height": 0.5, "fill_alpha": 0.5, "line_color": None, "source": self.source}
        self.chart.hbar("action", left="low", right="high", fill_color="colour", **bar)
        dot = {"size": 11, "line_color": "black", "source": self.source}
        self.chart.scatter("mean", "action", fill_color="colour", **dot)
        self.layout = side_by_side([self.says, self.chart])

    def show(self, policy: LinearPolicy, domain: Domain) -> None:
        """Ask for the values at the point of the domain, and show them."""
        (mean,), std, (chosen,), unknown = ask(policy, domain, domain.point[None])
        reach = np.zeros_like(mean) if std is None else 2.0 * std[0]
        self.chart.xaxis.axis_label = "value" + " ± 2 standard deviations" * (std is not None)
        self.source.data = {
            "action": domain.actions,
            "colour": self.colours,
            "mean": mean,
            "low": mean - reach,
            "high": mean + reach,
        }
        pairs = zip(domain.coordinates, domain.point, strict=True)
        place = ", ".join(f"{each.name} = {each.text(value)}" for each, value in pairs)
        doubt = "" if unknown is None or not unknown[0] else " <em>The data say little here.</em>"
        names = [
            f'<span class="swatch" style="background:{colour}"></span> {html.text(name)}'
            for colour, name in zip(self.colours, domain.actions, strict=True)
        ]
        numbers = [mean] if std is None else [mean, std[0]]
        rows = zip(names, *([f"{n:.4g}" for n in column] for column in numbers), strict=True)
        kinds = ["chosen" if a == chosen else "" for a in range(len(names))]
        columns = ("action", "#value", "#std")[: 1 + len(numbers)]
        self.says.text = f"<p>{html.text(place)}.{doubt}</p>{html.table(columns, rows, kinds)}"


def learning_curve(episodes: Matrix) -> Model:
    """The return of every episode, and its mean over neighbouring ones."""
    returns = episodes[:, 1]
    numbers = np.arange(1, len(returns) + 1)
    window = max(1, min(100, len(returns) // 20))
    sums = np.cumsum(np.append(0.0, returns))
    running = (sums[window:] - sums[:-window]) / window
    plot = figure(
        title="" if window == 1 else f"Episodes, and their mean over {window}",
        x_axis_label="episode",
        y_axis_label="return",
        height=300,
        **_NO_TOOLS,
    )
    few = np.unique(np.linspace(0, len(returns) - 1, 2000).astype(int))
    dots = plot.scatter(numbers[few], returns[few], size=3, color=SKY, alpha=0.5)
    few = few[few < len(running)]
    colour = VERMILLION if window > 1 else BLUE
    plot.line(numbers[few] + window - 1, running[few], line_color=colour, line_width=2)
    plot.add_tools(HoverTool(renderers=[dots], tooltips=[("episode", "@x"), ("return", "@y")]))
    return plot


def _label(axis: Any, coordinate: Coordinate) -> None:
    """The name of a coordinate on an axis, and marks at values that it can have."""
    axis.axis_label = coordinate.name
    axis.major_label_overrides = dict(enumerate(coordinate.words))
    if coordinate.words:
        axis.ticker = FixedTicker(ticks=[*range(len(coordinate.words))])
    elif coordinate.whole:
        axis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    else:
        axis.ticker = BasicTicker()


def _some_data(domain: Domain) -> Matrix:
    """A sample of the data; whole numbers are scattered, so that they do not hide each other."""
    rng, seen = np.random.default_rng(0), domain.data
    if len(seen) > MOST_DATA:
        seen = seen[rng.choice(len(seen), MOST_DATA, replace=False)]
    whole = np.array([each.whole for each in domain.coordinates], np.float64)
    return seen + whole * rng.uniform(-0.35, 0.35, seen.shape)
