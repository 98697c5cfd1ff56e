"""Pictures of an environment: a canvas to draw on, and carts with poles.

Matplotlib is imported when the first picture is drawn: learning without pictures does not need it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Array

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.typing import ColorType

PAPER = "#fbfbf9"
INK = "#27303a"
GREY = "#77818d"
PALE = "#d9dee3"
BLUE = "#2f6db0"
RED = "#c8453b"
ORANGE = "#e39a2d"
GREEN = "#5b8f62"


def placed(points: ArrayLike, at: tuple[float, float], angle: float = 0.0) -> Array:
    """Turn points, shape (n, 2), by an angle in radians about the origin, then move them."""
    cosine, sine = math.cos(angle), math.sin(angle)
    turn = np.array([[cosine, sine], [-sine, cosine]])
    turned: Array = np.asarray(points, dtype=np.float64) @ turn
    return turned + at


def box(width: float, height: float) -> Array:
    """Return the corners of a rectangle whose base is centred at the origin."""
    x = width / 2
    return np.array([[-x, 0.0], [x, 0.0], [x, height], [-x, height]])


def mixed(first: str, second: str, share: float) -> ColorType:
    """A colour between two: the second one's share is given."""
    from matplotlib.colors import to_hex, to_rgb

    shade: Any = (1.0 - share) * np.array(to_rgb(first)) + share * np.array(to_rgb(second))
    return to_hex(shade)


class Canvas:
    """A canvas; later shapes cover earlier ones.

    Positions, radii and shapes are in the coordinates of the `view`, whose y axis points up;
    the size of the picture, the widths of lines and the sizes of letters are in pixels. ``left``,
    ``right``, ``bottom`` and ``top`` bound what is visible. Colours are Matplotlib's.
    """

    def __init__(self, width: int = 600, height: int = 400, background: ColorType = PAPER) -> None:
        from matplotlib.figure import Figure

        # At 72 dots per inch Matplotlib's points are pixels.
        self._figure = Figure((width / 72, height / 72), dpi=72, facecolor=background)
        self.width = width
        self.height = height
        self.view(0.0, float(width), 0.0, float(height))

    def view(self, x_low: float, x_high: float, y_low: float, y_high: float) -> None:
        """Show this region, centred and as large as fits with circles staying round."""
        from matplotlib.transforms import Affine2D

        if not (x_low < x_high and y_low < y_high):
            raise ValueError(
                f"the view {x_low, x_high, y_low, y_high} is empty: "
                "give x_low < x_high and y_low < y_high"
            )
        scale = min(self.width / (x_high - x_low), self.height / (y_high - y_low))
        half_width, half_height = self.width / scale / 2, self.height / scale / 2
        x, y = (x_low + x_high) / 2, (y_low + y_high) / 2
        self.left, self.right = x - half_width, x + half_width
        self.bottom, self.top = y - half_height, y + half_height
        self._view = Affine2D().translate(-self.left, -self.bottom).scale(scale)

    def polygon(
        self,
        points: ArrayLike,
        fill: ColorType = "none",
        outline: ColorType = "none",
        width: float = 1.5,
    ) -> None:
        """Fill a polygon, and draw its edge if there is an ``outline``."""
        from matplotlib.patches import Polygon

        colours: Any = {"facecolor": fill, "edgecolor": outline, "linewidth": width}
        self._add(Polygon(np.asarray(points), joinstyle="round", **colours))

    def circle(
        self,
        centre: tuple[float, float],
        radius: float,
        fill: ColorType = "none",
        outline: ColorType = "none",
        width: float = 1.5,
    ) -> None:
        """Draw a disc, a ring, or both."""
        turn = np.linspace(0.0, 2.0 * math.pi, 60)
        rim = radius * np.column_stack([np.cos(turn), np.sin(turn)])
        self.polygon(placed(rim, centre), fill, outline, width)

    def line(
        self,
        points: ArrayLike,
        colour: ColorType = INK,
        width: float = 1.5,
        dash: float | None = None,
    ) -> None:
        """Draw a line through the points, with round ends; ``dash`` is in pixels."""
        from matplotlib.lines import Line2D

        x, y = np.asarray(points, dtype=np.float64).T
        style: Any = "-" if dash is None else (0, (dash / width, dash / width))
        line = Line2D(x, y, color=colour, linewidth=width, linestyle=style)
        line.set_solid_capstyle("round")
        self._add(line)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        size: float = 15,
        colour: ColorType = INK,
        **alignment: Any,
    ) -> None:
        """Write, centred unless ``ha`` or ``va`` say otherwise."""
        from matplotlib.text import Text

        place: Any = {"ha": "center", "va": "center"} | alignment
        self._add(Text(*at, text, fontsize=size, color=colour, **place))

    def picture(self) -> NDArray[np.uint8]:
        """Return what was drawn so far, shape (height, width, 3)."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas: Any = FigureCanvasAgg(self._figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba(), np.uint8)[..., :3]

    def _add(self, artist: Artist) -> None:
        artist.set_transform(self._view)
        artist.set_zorder(0)
        self._figure.add_artist(artist)


# Carts with poles -------------------------------------------------------------------------------


def drawn_sizes(edge: float, length: float) -> tuple[float, float]:
    """Sizes of the pole and of the cart in a picture of a track with these edges.

    The pole is drawn longer than it is, because it would look small beside the track.
    """
    return 1.6 * edge / 2.4 * length / 0.5, 0.25 * edge / 2.4


def draw_track(canvas: Canvas, edge: float, cart: float, marked: float = 0.0) -> None:
    """Draw the track below a cart of this size, with its stops and a marked part in the middle."""
    ground = _ground(cart)
    if marked > 0.0:
        canvas.line([(-marked, ground), (marked, ground)], GREEN, 8)
    canvas.line([(-edge, ground), (edge, ground)], INK, 3)
    for x in (-edge, edge):
        stop = box(0.12 * cart, 2.6 * cart)
        canvas.polygon(placed(stop, (x, ground - 0.6 * cart)), fill=RED)
        canvas.text((x, ground - 1.3 * cart), f"{x:+g}", 13, GREY)
    for x in np.linspace(-edge, edge, 9)[1:-1]:
        canvas.line([(x, ground), (x, ground - 0.3 * cart)], INK, 1.5)
    canvas.text((0.0, ground - 1.3 * cart), "0", 13, GREY)


def draw_cart(canvas: Canvas, position: float, angle: float, length: float, cart: float) -> None:
    """Draw the ground, a cart of this size, and the pole on it."""
    ground, axle = _ground(cart), (position, 0.0)
    canvas.line([(canvas.left, ground), (canvas.right, ground)], PALE, 2)
    for x in (-0.7 * cart, 0.7 * cart):
        canvas.circle((position + x, ground + 0.4 * cart), 0.4 * cart, fill=INK)
        canvas.circle((position + x, ground + 0.4 * cart), 0.15 * cart, fill=PALE)
    canvas.polygon(placed(box(2.6 * cart, 0.95 * cart), (position, ground + 0.7 * cart)), fill=INK)
    tip = (position + length * math.sin(angle), length * math.cos(angle))
    canvas.line([axle, tip], BLUE, 9)
    canvas.circle(axle, 0.3 * cart, fill=PALE, outline=INK, width=2)


def _ground(cart: float) -> float:
    """The height of the ground below the axle of the pole."""
    return -1.45 * cart
