"""A page to look around in what an agent or a policy knows.

`app` is the page of ``rblspi explore``, an application of Bokeh: when somebody moves a slider or
the pointer, the library computes the values. `write` makes a still page with the same pictures. It
is one file and needs no network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

try:
    from bokeh.document import Document
    from bokeh.embed import file_html
    from bokeh.events import MouseMove, Tap
    from bokeh.models import CheckboxGroup, Column, Model, Select, Slider, TabPanel, Tabs
    from bokeh.resources import INLINE
    from jinja2 import Template
except ImportError as error:
    raise ImportError(
        'pages to explore need Bokeh: pip install "rblspi[explore]", or use rblspi show'
    ) from error

from rblspi.core.archive import printable
from rblspi.core.files import write_text
from rblspi.core.types import Matrix
from rblspi.plotting import html
from rblspi.plotting.domain import Domain, find
from rblspi.plotting.explorer_pictures import (
    AtPoint,
    Line,
    Map,
    learning_curve,
    side_by_side,
    words,
)
from rblspi.plotting.maps import dimensions, slice_at
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.evaluate import Actor, policy_of

#: whole numbers that a list to choose from has at the most; a slider has more
MOST_CHOICES = 60
#: milliseconds in which several movements of a slider or the pointer lead to one drawing
TOGETHER = 25
#: milliseconds between two looks whether there is something new to show
LOOK_EVERY = 2000

_PAGE = html.document(
    "{{ title | e }}",
    "{% from macros import embed %}<h1>{{ title | e }}</h1>\n"
    "{% for root in roots %}{{ embed(root) }}{% endfor %}\n{{ plot_script }}",
    head="{{ bokeh_css }}{{ bokeh_js }}",
    security="default-src 'none'; img-src data: blob:; connect-src 'self' ws:; "
    "style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'",
)


class Known(NamedTuple):
    """What a page shows of an actor."""

    policy: LinearPolicy
    domain: Domain
    episodes: Matrix  # length and return of each, shape (episodes, 2)


def known(actor: Actor, domain: Domain | None = None) -> Known:
    """What there is to show of an agent or a `LinearPolicy`.

    The domain is what `rblspi.plotting.domain.find` has found; by default it looks now.
    """
    episodes = np.asarray(getattr(actor, "episodes", np.empty((0, 2))))
    return Known(policy_of(actor), domain or find(actor), episodes)


def write(actor: Actor, path: str | PathLike[str], domain: Domain | None = None) -> Path:
    """Write a still page with maps of all pairs of coordinates, and with values at one point.

    The other arguments are those of `known`.
    """
    document = Document()
    View(known(actor, domain), document, still=True)
    page = file_html(document, INLINE, document.title, template=document.template)
    write_text(path, page)
    return Path(path)


def app(latest: Callable[[], Known]) -> Callable[[Document], None]:
    """Make a page that computes values while somebody looks around.

    Parameters
    ----------
    latest : callable
        Returns what to show. It is called every two seconds; another result takes the place of the
        one before.

    Returns
    -------
    callable
        An application for `bokeh.server.server.Server`, or for `bokeh.io.show` in a notebook.
    """

    def fill(document: Document) -> None:
        view = View(latest(), document)

        def look() -> None:
            nonlocal view
            found = latest()
            if found is not view.known:
                view = View(found, document, before=view)

        document.add_periodic_callback(look, LOOK_EVERY)

    return fill


class View:
    """The page about one actor, and what happens if somebody moves a control or the pointer.

    Parameters
    ----------
    known : Known
    document : Document
        What it shows is replaced.
    before : View, optional
        Its point and coordinates are kept if they are those of the same observations.
    still : bool
        Whether the page has all pairs of coordinates, and no controls.
    """

    def __init__(
        self, known: Known, document: Document, before: View | None = None, still: bool = False
    ) -> None:
        self.known, self.document, self.waiting = known, document, False
        self.point = known.domain.point.copy()
        pairs = dimensions(len(self.point))[: None if still else 1]
        if before is not None and before.known.domain.names == known.domain.names:
            pairs = [before.pictures[0].axes]
            values = zip(known.domain.coordinates, before.point, strict=True)
            self.point = np.array([each.nearest(value) for each, value in values])
        kind = Map if len(self.point) > 1 else Line
        certain = known.policy.value_draws is not None
        self.pictures: list[Map | Line] = [
            kind(known.domain, axes, certain, still) for axes in pairs
        ]
        self.at_point = AtPoint(known.domain.actions)
        self.sides: list[Any] = []
        self.controls = [] if still else [self._control(d) for d in range(len(self.point))]
        self.draw()
        self._lay_out()

    def _lay_out(self) -> None:
        policy = self.known.policy
        name = "a log" if policy.environment is None else policy.environment["id"]
        algorithm = policy.provenance.get("algorithm", "a policy")
        parts = [
            words(f"<p>{_lead(self.known)}</p>", name="lead"),
            *(self._connected() if self.controls else []),
            self._beside_each_other(),
            words("<h2>Values of the actions</h2>"),
            self.at_point.layout,
        ]
        if len(self.known.episodes):
            parts += [words("<h2>Learning curve</h2>"), learning_curve(self.known.episodes)]
        self.document.clear()
        self.document.add_root(Column(children=parts, sizing_mode="stretch_width", name="page"))
        self.document.title = printable(
            f"{name or 'An environment without an id'}, as {algorithm} sees it"
        )
        self.document.template = Template(_PAGE)

    def _beside_each_other(self) -> Model:
        """The only picture, or one tab for each."""
        if len(self.pictures) == 1:
            return self.pictures[0].layout
        tabs = []
        for picture in self.pictures:
            title = ", ".join(self.known.domain.names[d] for d in picture.axes)
            tabs.append(TabPanel(child=picture.layout, title=title))
        return Tabs(tabs=tabs, sizing_mode="stretch_width")

    # Controls -------------------------------------------------------------------------------------

    def _connected(self) -> list[Model]:
        """The controls, once moving them or the pointer has consequences."""
        picture = self.pictures[0]
        for plot in picture.plots:
            plot.on_event(MouseMove, self._pointed)
            plot.on_event(Tap, self._pointed)
        if isinstance(picture, Line):
            return [side_by_side(self.controls)]
        for side in picture.ranges:
            side.on_change("start", self._zoomed)
            side.on_change("end", self._zoomed)
        if len(self.point) > 2:
            options = [(str(d), name) for d, name in enumerate(self.known.domain.names)]
            titles = "from left to right", "from bottom to top"
            for axis, title in zip(picture.axes, titles, strict=True):
                select = Select(title=title, value=str(axis), options=options)
                select.sizing_mode = "stretch_width"
                select.on_change("value", self._turned)
                self.sides.append(select)
        names = [*picture.layers]
        layers = CheckboxGroup(labels=names, inline=True)
        layers.active = [names.index(name) for name in picture.shown]
        layers.on_change("active", lambda attr, old, new: picture.lay([names[i] for i in new]))
        return [side_by_side([*self.sides, *self.controls]), layers]

    def _control(self, d: int) -> Any:
        """A list to choose from for words and few whole numbers, a slider for other numbers."""
        coordinate, value = self.known.domain.coordinates[d], float(self.point[d])
        low, high = coordinate.low, coordinate.high
        if coordinate.whole and high - low < MOST_CHOICES:
            options = [(str(n), coordinate.text(n)) for n in coordinate.points(0).tolist()]
            control = Select(title=coordinate.name, value=str(value), options=options)
        else:
            step = 1.0 if coordinate.whole else (high - low) / 200
            value = min(max(value, low), high)
            control = Slider(title=coordinate.name, start=low, end=high, value=value, step=step)
            control.format = "0.[00000]"
        control.update(name=f"control {d}", sizing_mode="stretch_width")
        control.on_change("value", partial(self._moved, d))
        return control

    # What happens ---------------------------------------------------------------------------------

    def _moved(self, d: int, attr: str, old: Any, new: Any) -> None:
        """Somebody moved the control of a coordinate."""
        if float(new) != self.point[d]:
            self.point[d] = float(new)
            self._later()

    def _pointed(self, event: Any) -> None:
        """The pointer moved over a picture."""
        for d, value in zip(self.pictures[0].axes, (event.x, event.y), strict=False):
            self.point[d] = self.known.domain.coordinates[d].nearest(value)
            control, value = self.controls[d], float(self.point[d])
            control.value = str(value) if isinstance(control, Select) else value
        self._later()

    def _turned(self, attr: str, old: str, new: str) -> None:
        """Somebody chose which coordinates are drawn; one that is drawn already changes places."""
        (picture,) = self.pictures
        assert isinstance(picture, Map)
        axes = tuple(int(side.value) for side in self.sides)
        if axes[0] == axes[1]:
            axes = picture.axes[::-1]
        for side, axis in zip(self.sides, axes, strict=True):
            side.value = str(axis)
        if axes != picture.axes:
            picture.turn(axes)
            self._later()

    def _zoomed(self, attr: str, old: float, new: float) -> None:
        """Somebody chose another part of a map."""
        self._later()

    def _later(self) -> None:
        """Draw once for everything that moves within a moment."""
        if not self.waiting:
            self.waiting = True
            self.document.add_timeout_callback(self.draw, TOGETHER)

    def draw(self) -> None:
        """Compute and draw what has changed."""
        self.waiting = False
        domain = self.known.domain._replace(point=self.point)
        for picture in self.pictures:
            points = picture.points()
            needed = (picture.axes, *map(bytes, points), bytes(np.delete(self.point, picture.axes)))
            if needed != picture.drawn:
                picture.drawn = needed
                picture.show(slice_at(self.known.policy, domain, picture.axes, points))
            picture.mark(self.point)
        self.at_point.show(self.known.policy, domain)


def _lead(known: Known) -> str:
    """One paragraph about the actor, as HTML."""
    policy = known.policy
    steps = policy.provenance.get("transitions", 0)
    episodes = f" in {len(known.episodes):,} episodes" if len(known.episodes) else ""
    basis = type(policy.basis).__name__
    return (
        f"After {steps:,} transitions{episodes}, with {policy.features.size:,} features of {basis}."
    )
