"""Pictures of an environment: a canvas to draw on, and a window to show it in.

Pillow and pygame are imported when the first picture is drawn or shown, never before: an
environment that is only learnt in needs neither.
"""

from __future__ import annotations

import math
import os
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.types import Array, Vector

Colour = str | tuple[int, int, int] | tuple[int, int, int, int]

PAPER = "#fbfbf9"
INK = "#27303a"
GREY = "#77818d"
PALE = "#d9dee3"
BLUE = "#2f6db0"
RED = "#c8453b"
ORANGE = "#e39a2d"
GREEN = "#5b8f62"

_SUPERSAMPLING = 3
_CELLS_IN_A_ROW = 25


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


class Canvas:
    """A picture in the making.

    Everything is drawn larger than asked and reduced at the end, which smooths the edges.
    Positions, radii and shapes are in the coordinates of the `view`, whose y axis points up;
    the size of the picture, the widths of lines and the sizes of letters are in pixels. ``left``,
    ``right``, ``bottom`` and ``top`` bound what is visible.
    """

    def __init__(self, width: int = 600, height: int = 400, background: Colour = PAPER) -> None:
        from PIL import Image, ImageDraw

        size = (width * _SUPERSAMPLING, height * _SUPERSAMPLING)
        self._image = Image.new("RGB", size, background)
        self._pen = ImageDraw.Draw(self._image, "RGBA")
        self.width = width
        self.height = height
        self.view(0.0, float(width), 0.0, float(height))

    def view(self, x_low: float, x_high: float, y_low: float, y_high: float) -> None:
        """Show this region, centred and as large as fits with circles staying round."""
        if not (x_low < x_high and y_low < y_high):
            raise ValueError(
                f"the view {x_low, x_high, y_low, y_high} is empty: "
                "give x_low < x_high and y_low < y_high"
            )
        self._scale = min(self.width / (x_high - x_low), self.height / (y_high - y_low))
        half_width, half_height = self.width / self._scale / 2, self.height / self._scale / 2
        x, y = (x_low + x_high) / 2, (y_low + y_high) / 2
        self.left, self.right = x - half_width, x + half_width
        self.bottom, self.top = y - half_height, y + half_height

    def polygon(
        self,
        points: ArrayLike,
        fill: Colour | None = None,
        outline: Colour | None = None,
        width: float = 1.5,
    ) -> None:
        """Fill a polygon, and draw its edge if there is an ``outline``."""
        corners = self._pixels(points)
        if fill is not None:
            self._pen.polygon(_flat(corners), fill=fill)
        if outline is not None:
            self._stroke(np.vstack([corners, corners[:1]]), outline, width)

    def line(
        self,
        points: ArrayLike,
        colour: Colour = INK,
        width: float = 1.5,
        dash: float | None = None,
    ) -> None:
        """Draw a line through the points, with round ends; ``dash`` is in pixels."""
        corners = self._pixels(points)
        if dash is None:
            self._stroke(corners, colour, width)
            return
        for start, end in pairwise(corners):
            length = float(np.hypot(*(end - start)))
            marks = np.arange(0.0, length, 2 * dash * _SUPERSAMPLING)
            for mark in marks:
                stop = min(mark + dash * _SUPERSAMPLING, length)
                ends = np.array([[mark], [stop]]) / length
                self._stroke(start + ends * (end - start), colour, width)

    def circle(
        self,
        centre: tuple[float, float],
        radius: float,
        fill: Colour | None = None,
        outline: Colour | None = None,
        width: float = 1.5,
    ) -> None:
        """Draw a disc, a ring, or both."""
        (middle,) = self._pixels([centre])
        self._disc(middle, radius * self._scale * _SUPERSAMPLING, fill, outline, width)

    def text(
        self,
        at: tuple[float, float],
        text: str,
        size: float = 15,
        colour: Colour = INK,
        anchor: str = "mm",
    ) -> None:
        """Write; ``anchor`` is Pillow's, where "mm" centres the text and "ls" starts it there."""
        from PIL import ImageFont

        (position,) = self._pixels([at])
        font = ImageFont.load_default(size * _SUPERSAMPLING)
        self._pen.text((position[0], position[1]), text, fill=colour, font=font, anchor=anchor)

    def picture(self) -> NDArray[np.uint8]:
        """Return what was drawn so far, shape (height, width, 3)."""
        return np.array(self._image.reduce(_SUPERSAMPLING), dtype=np.uint8)

    def _pixels(self, points: ArrayLike) -> Array:
        x, y = np.asarray(points, dtype=np.float64).T
        scale = self._scale * _SUPERSAMPLING
        return np.column_stack([(x - self.left) * scale, (self.top - y) * scale])

    def _stroke(self, corners: Array, colour: Colour, width: float) -> None:
        thickness = max(round(width * _SUPERSAMPLING), 1)
        self._pen.line(_flat(corners), fill=colour, width=thickness, joint="curve")
        # Opaque lines only: discs on the ends of a translucent one would show.
        if isinstance(colour, str) and width >= 3:
            for end in (corners[0], corners[-1]):
                self._disc(end, thickness / 2, colour, None, 0)

    def _disc(
        self,
        middle: Array,
        radius: float,
        fill: Colour | None,
        outline: Colour | None,
        width: float,
    ) -> None:
        bounds = (*(middle - radius).tolist(), *(middle + radius).tolist())
        self._pen.ellipse(bounds, fill, outline, max(round(width * _SUPERSAMPLING), 1))


def _flat(corners: Array) -> list[float]:
    flat: list[float] = corners.ravel().tolist()
    return flat


def draw_row(canvas: Canvas, rewards: Vector, here: int) -> None:
    """Draw states as cells in a row: rewarded ones are tinted, the present one holds a disc.

    What does not fit goes on in further rows below.
    """
    states, columns = len(rewards), min(len(rewards), _CELLS_IN_A_ROW)
    canvas.view(-1.0, columns, -2.0 - 2.4 * ((states - 1) // columns), 2.0)
    largest = max(np.abs(rewards).max(), 1e-12)
    cell = box(1.0, 1.0) - (0.0, 0.5)
    # Labels need about 24 pixels of width each.
    every = max(1, round(24 * (canvas.right - canvas.left) / canvas.width + 0.5) - 1)
    for state, reward in enumerate(rewards):
        x, y = state % columns, -2.4 * (state // columns)
        strength = round(110 * abs(reward) / largest)
        tint = (227, 154, 45, strength) if reward > 0 else (200, 69, 59, strength)
        corners = placed(cell, (x, y))
        canvas.polygon(corners, fill="white")
        canvas.polygon(corners, fill=tint, outline=INK, width=1.2)
        if reward:
            canvas.text((x, y + 0.85), f"{reward:+g}", 14, ORANGE if reward > 0 else INK)
        if state % every == 0 or state in (here, states - 1):
            canvas.text((x, y - 0.85), str(state), 12, INK if state == here else GREY)
        if state == here:
            canvas.circle((x, y), 0.33, fill=BLUE)


class Window:
    """A window that shows pictures at a steady rate, by pygame.

    Pictures shown after the user has closed it are dropped, and the environment goes on.
    """

    def __init__(self, title: str, frames_per_second: float = 30) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
        except ImportError as error:
            raise ImportError(
                'render_mode="human" needs pygame: pip install "rblspi[render]"'
            ) from error
        self._pygame: Any = pygame
        self._clock = pygame.time.Clock()
        self._title = title
        self._frames_per_second = frames_per_second
        self._open = True

    def show(self, picture: NDArray[np.uint8]) -> None:
        """Show a picture of shape (height, width, 3), and wait until the next one is due."""
        if not self._open:
            return
        pygame = self._pygame
        height, width, _ = picture.shape
        surface = pygame.display.get_surface()
        if surface is None or surface.get_size() != (width, height):
            pygame.display.init()
            surface = pygame.display.set_mode((width, height))
            pygame.display.set_caption(self._title)
        surface.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.display.flip()
        if pygame.event.get(pygame.QUIT):
            self.close()
            return
        pygame.event.pump()
        self._clock.tick(self._frames_per_second)

    def close(self) -> None:
        """Close the window; doing so twice is harmless."""
        if self._open:
            self._open = False
            self._pygame.display.quit()
