"""What is drawn on the page, as models of Bokeh; the scripts of the page move them."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.events import MouseMove, RangesUpdate, Tap
from bokeh.models import (
    BasicTicker,
    CheckboxGroup,
    ColorBar,
    ColumnDataSource,
    CustomJS,
    Div,
    HoverTool,
    InlineStyleSheet,
    LinearColorMapper,
    LogColorMapper,
    Model,
    Range1d,
    Select,
    Slider,
)
from bokeh.plotting import figure

from rblspi.core.types import Matrix
from rblspi.plotting.domain import Domain
from rblspi.plotting.explorer.numbers import line_points
from rblspi.plotting.maps import action_colours, arrow, ask
from rblspi.plotting.style import BLUE, SKY, VERMILLION
from rblspi.policies.values import ValuePosterior

#: what the page does when a choice changes, the pointer moves, or somebody zooms
_CHOOSE = "window.explorer?.choose()"
_ASK = "window.explorer?.ask(cb_obj.x, cb_obj.y)"
_REFRESH = "window.explorer?.refresh()"
#: what can lie on top of a map, in the order of `Parts.layered`
LAYERS = ("episodes", "data", "a grey veil where the data say little")
_TABLE = """
    :host { font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
    table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
    th, td { padding: .2rem .9rem .2rem 0; text-align: left; }
    .number { text-align: right; }
    .chosen td { font-weight: 600; }
    .swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
    p { margin: 0 0 .5rem; }
"""


def point_parts(domain: Domain) -> dict[str, Any]:
    """The values at the pointer: a chart with intervals, and a table."""
    actions, colours = domain.actions, action_colours(len(domain.actions))
    nothing = np.zeros(len(actions))
    source = ColumnDataSource(
        {"action": actions, "colour": colours, "mean": nothing, "low": nothing, "high": nothing}
    )
    chart = figure(
        y_range=actions[::-1],
        height=max(140, 60 + 34 * len(actions)),
        sizing_mode="stretch_width",
        x_axis_label="value ± 2 standard deviations",
        toolbar_location=None,
        tools="",
    )
    chart.segment(
        "low", "action", "high", "action", line_color="colour", line_width=4, source=source
    )
    chart.scatter("mean", "action", size=11, fill_color="colour", line_color="black", source=source)
    says = Div(sizing_mode="stretch_width", stylesheets=[InlineStyleSheet(css=_TABLE)])
    here = ColumnDataSource({"x": [], "y": []})
    return {"actions": source, "chart": chart, "says": says, "here": here}


def map_parts(domain: Domain, certain: bool, here: ColumnDataSource) -> dict[str, Any]:
    """Maps of value, uncertainty and policy, with sliders for the dimensions that are not drawn."""
    count = len(domain.actions)
    empty = np.zeros((2, 2))
    cells = ColumnDataSource(
        {name: [empty] for name in ("value", "std", "action", "unknown")}
        | {"x": [0.0], "y": [0.0], "width": [1.0], "height": [1.0]}
    )
    # The first limits make room for the labels of the bars; the page sets those of its values.
    colours: dict[str, Any] = {"value": LinearColorMapper("Viridis256", low=-1000, high=0)}
    if certain:
        colours["std"] = LogColorMapper("Magma256", low=0.0001, high=0.01)
    colours["action"] = LinearColorMapper(action_colours(count), low=-0.5, high=count - 0.5)
    titles = {
        "value": "Value of the policy's action",
        "std": "Its standard deviation",
        "action": "Policy",
    }
    ranges = [Range1d(0, 1), Range1d(0, 1)]
    layers: list[list[Any]] = [[], [], []]
    sources = {
        "paths": ColumnDataSource({"xs": [], "ys": []}),
        "ends": ColumnDataSource({"x": [], "y": []}),
        "seen": ColumnDataSource({"x": [], "y": []}),
    }
    maps = []
    for name, mapper in colours.items():
        plot = _map(titles[name], ranges, domain)
        place = {"x": "x", "y": "y", "dw": "width", "dh": "height", "source": cells}
        plot.image(image=name, color_mapper=mapper, **place)
        if name != "action":
            plot.add_layout(ColorBar(color_mapper=mapper, width=10, padding=4), "right")
        _add_layers(plot, layers, sources, place)
        plot.scatter("x", "y", source=here, marker="cross", size=14, color="white", line_width=2)
        maps.append(plot)
    shown = CheckboxGroup(labels=list(LAYERS[: 3 if certain else 2]), inline=True)
    shown.active = [0, 2] if domain.episodes else [1, 2]
    shown.js_on_change("active", CustomJS(code=_CHOOSE))
    return {
        "cells": cells,
        "colours": colours,
        "ranges": ranges,
        "figures": maps,
        "layers": shown,
        "layered": layers,
        **sources,
        **_choices(domain),
    }


def _map(title: str, ranges: list[Range1d], domain: Domain) -> Any:
    plot = figure(
        title=title,
        x_range=ranges[0],
        y_range=ranges[1],
        height=340,
        sizing_mode="stretch_width",
        tools="" if domain.grid else "box_zoom,wheel_zoom,reset",
        toolbar_location=None if domain.grid else "above",
        active_drag=None,
        active_scroll=None,
        match_aspect=domain.grid is not None,
    )
    plot.grid.visible = False
    plot.toolbar.logo = None
    if domain.whole:
        plot.axis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    for event in (MouseMove, Tap):
        plot.js_on_event(event, CustomJS(code=_ASK))
    plot.js_on_event(RangesUpdate, CustomJS(code=_REFRESH))
    return plot


def _add_layers(
    plot: Any, layers: list[list[Any]], sources: dict[str, ColumnDataSource], place: dict[str, Any]
) -> None:
    """Episodes, data and a veil, in the order of `LAYERS`; the veil lies below the others."""
    veil = LinearColorMapper(["#BDBDBD00", "#BDBDBDD0"], low=0, high=1)
    layers[2].append(plot.image(image="unknown", color_mapper=veil, **place))
    dots = {"size": 2.5, "color": "white", "line_color": None, "alpha": 0.6}
    seen = plot.scatter("x", "y", source=sources["seen"], **dots)
    layers[1].append(seen)
    line = {"line_color": "white", "line_width": 0.8, "line_alpha": 0.6}
    layers[0].append(plot.multi_line("xs", "ys", source=sources["paths"], **line))
    end = {"marker": "square", "size": 6, "fill_color": "white", "line_color": "black"}
    layers[0].append(plot.scatter("x", "y", source=sources["ends"], **end))


def _choices(domain: Domain) -> dict[str, Any]:
    """Which dimensions are drawn, and where the others are."""
    count = len(domain.names)
    if count == 2:
        return {"x": None, "y": None, "sliders": []}
    options = [(str(d), name) for d, name in enumerate(domain.names)]
    x, y = (
        Select(title=title, value=str(d), options=options, width=210)
        for d, title in enumerate(("from left to right", "from bottom to top"))
    )
    sliders = [
        Slider(
            title=name,
            start=float(low),
            end=float(high),
            value=float(np.clip(value, low, high)),
            step=1.0 if domain.whole else float(high - low) / 200,
            format="0.[00000]",
            sizing_mode="stretch_width",
        )
        for name, low, high, value in zip(
            domain.names, domain.low, domain.high, domain.point, strict=True
        )
    ]
    for widget in (x, y, *sliders):
        widget.js_on_change("value", CustomJS(code=_CHOOSE))
    return {"x": x, "y": y, "sliders": sliders}


def arrows(values: ValuePosterior, domain: Domain, plot: Any) -> None:
    """Write arrows into the cells of a grid whose actions are directions."""
    if domain.grid is None or not any(map(arrow, domain.actions)):
        return
    rows, columns = domain.grid
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(columns), np.arange(rows)))
    chosen = ask(values, domain, np.column_stack([x, y]).astype(np.float64)).policy
    words = [arrow(domain.actions[action]) for action in chosen]
    source = ColumnDataSource({"x": x, "y": y, "text": words})
    plot.text("x", "y", "text", source=source, text_align="center", text_baseline="middle")


def line_parts(values: ValuePosterior, domain: Domain, here: ColumnDataSource) -> dict[str, Any]:
    """The values of all actions along a single dimension."""
    points = line_points(domain)
    mean, std, _, _ = ask(values, domain, points)
    plot = figure(
        title="Action values" if std is None else "Action values ± 2 standard deviations",
        x_axis_label=domain.names[0],
        y_axis_label="value",
        height=360,
        sizing_mode="stretch_width",
        tools="",
        toolbar_location=None,
    )
    colours = action_colours(len(domain.actions))
    for a, (name, colour) in enumerate(zip(domain.actions, colours, strict=True)):
        if std is not None:
            reach = 2.0 * std[:, a]
            low, high = mean[:, a] - reach, mean[:, a] + reach
            plot.varea(points[:, 0], low, high, fill_color=colour, fill_alpha=0.2)
        plot.line(points[:, 0], mean[:, a], line_color=colour, line_width=2, legend_label=name)
    plot.scatter("x", "y", source=here, size=10, color="black")
    for event in (MouseMove, Tap):
        plot.js_on_event(event, CustomJS(code=_ASK))
    plot.legend.background_fill_alpha = 0.7
    return {"figures": [plot], "x": None, "y": None, "sliders": [], "layers": None, "layered": []}


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
        sizing_mode="stretch_width",
        tools="",
        toolbar_location=None,
    )
    few = np.unique(np.linspace(0, len(returns) - 1, 2000).astype(int))
    dots = plot.scatter(numbers[few], returns[few], size=3, color=SKY, alpha=0.5)
    few = few[few < len(running)]
    plot.line(
        numbers[few] + window - 1,
        running[few],
        line_color=VERMILLION if window > 1 else BLUE,
        line_width=2,
    )
    plot.add_tools(HoverTool(renderers=[dots], tooltips=[("episode", "@x"), ("return", "@y")]))
    return plot
