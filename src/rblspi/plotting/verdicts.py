"""The picture of verdicts under readings: claims down, readings across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch, Rectangle

from rblspi.experiments.judging import Verdict
from rblspi.plotting.style import BLACK, GREEN, GREY, VERMILLION

_LOOKS: dict[Verdict, tuple[str, str]] = {
    "holds": (GREEN, "✓"),
    "does not hold": (VERMILLION, "✗"),
    "undecided": ("#BDBDBD", "?"),
}
#: how strongly a verdict is drawn that is the default's, because the reading changes nothing
FAINT = 0.18
#: inches: the side of a cell, and the width of a figure that has room for the legend in one row
CELL, WIDE = 0.36, 9.0


#: verdicts by claim and reading
ByReading = Mapping[str, Mapping[str, Verdict]]


class ReadingVerdicts(NamedTuple):
    """Verdicts on claims under the readings of a paper, and the picture of them."""

    single: ByReading
    combined: ByReading  # under several readings at once
    words: Mapping[str, str]  # all of it in a sentence, by claim
    picture: Path | None  # an SVG file

    def of(self, claim: str) -> dict[str, Verdict]:
        """All verdicts on a claim by reading, combinations included."""
        return {**self.single.get(claim, {}), **self.combined.get(claim, {})}


def draw(
    claims: Sequence[str],
    readings: Sequence[str],
    verdicts: Sequence[Sequence[Verdict | None]],
    own: Sequence[Sequence[bool]],
) -> Drawing:
    """Draw a table of verdicts.

    Parameters
    ----------
    claims, readings : sequence of str
        Names of rows and of columns.
    verdicts : sequence of sequence
        One row for each claim; None where there are no runs.
    own : sequence of sequence of bool
        Whether the reading changes what the claim is judged on.
    """
    lines = [line for claim in claims for line in claim.split("\n")]
    width = 0.5 + 0.085 * max(map(len, lines), default=0) + CELL * len(readings)
    height = 1.9 + CELL * max(len(claims), 0.5 * len(lines))
    drawing = Drawing(figsize=(width, height), layout="constrained")
    ax = drawing.subplots()
    for row, (found, changed) in enumerate(zip(verdicts, own, strict=True)):
        for column, (verdict, is_own) in enumerate(zip(found, changed, strict=True)):
            if verdict is None:
                continue
            colour, sign = _LOOKS[verdict]
            place = (column - 0.46, row - 0.44)
            ax.add_patch(
                Rectangle(place, 0.92, 0.88, color=colour, alpha=1.0 if is_own else FAINT, lw=0)
            )
            if is_own:
                ax.text(column, row, sign, ha="center", va="center", color="white", fontsize=10)
    ax.set_xlim(-0.6, len(readings) - 0.4)
    ax.set_ylim(len(claims) - 0.4, -0.6)
    ax.set_xticks(range(len(readings)), readings, rotation=55, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(claims)), claims)
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelcolor=BLACK)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    handles = [Patch(color=colour, label=f"{sign} {v}") for v, (colour, sign) in _LOOKS.items()]
    rows = zip(verdicts, own, strict=True)
    if any(v and not changes for row in rows for v, changes in zip(*row, strict=True)):
        words = "pale, without a sign: the reading changes nothing, as the default"
        handles.append(Patch(color=GREY, alpha=FAINT, label=words))
    drawing.legend(
        handles=handles, loc="outside lower left", ncols=4 if width > WIDE else 2, fontsize=8.5
    )
    return drawing
