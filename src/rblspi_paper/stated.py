"""Numbers that the paper states, beside those measured here.

The learning curves of the paper are pictures. What can be compared are the numbers in its text and
those behind its figure of the chain walk, which its source has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rblspi.core.files import write_text
from rblspi.plotting.tables import CLIPPED, interval_text, markdown


class Stated(NamedTuple):
    """A number of the paper, and the findings of ours that it is about."""

    what: str
    paper: str
    where: str
    claim: str
    finding: str  # how the findings begin; only those that their claim counts, unless named whole


TEXT, FIGURE = "text", "figure of the chain walk"
BOTH, SIX = f"{TEXT}, {FIGURE}", "6 (text), 4 (figure)"
STATED = (
    Stated("mountain car, steps to the goal, best α", "below 110", TEXT, "car-1", "final steps"),
    Stated("sparse car, steps to the goal, best α", "below 110", TEXT, "sparse-1", "final steps"),
    Stated("sparse car, share of runs of online LSPI at the goal", "0", TEXT, "sparse-2", ""),
    Stated(
        *("pendulum, steps after about 200 episodes with β = 10", "optimal: 3000", TEXT),
        *("pendulum-3", ""),
    ),
    Stated(
        *("pendulum, steps of online LSPI after 2000 episodes", "not optimal: below 3000", TEXT),
        *("pendulum-4", ""),
    ),
    Stated("cart pole, steps, best setting", "above 480", TEXT, "pole-1", ""),
    Stated(
        *("chain, improvements until BLSPI has the optimal policy, where it gets there", SIX),
        *(BOTH, "chain-1", "BLSPI: improvements needed"),
    ),
    Stated(
        *("chain, improvements until LSPI has the optimal policy, where it gets there", SIX),
        *(BOTH, "chain-1", "LSPI: improvements needed"),
    ),
    Stated(
        *("chain, largest difference of values of BLSPI and LSPI, relative", "0.261", FIGURE),
        *("chain-2", "largest difference"),
    ),
    Stated(
        *("chain, share of states in which their policies agree, at worst", "1", FIGURE),
        *("chain-2", "share of states"),
    ),
)


def write_numbers(folder: Path) -> Path:
    """Write ``numbers.md`` from the ``claims.json`` in the same folder; returns the page."""
    content = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    page = folder / "numbers.md"
    write_text(page, _page(content["claims"]))
    return page


def _page(claims: Sequence[Mapping[str, Any]]) -> str:
    found = {claim["id"]: claim["findings"] for claim in claims}
    rows = []
    for stated in STATED:
        for name, finding in _findings(stated, found.get(stated.claim, ())):
            mean, low, high = (
                float("nan") if value is None else float(value)
                for value in (finding["mean"], *finding["interval"])
            )
            measured = interval_text(mean, low, high, finding["clipped"])
            rows.append((name, stated.paper, stated.where, measured, finding["runs"]))
    lines = [
        "# Numbers of the paper, side by side",
        "",
        "The learning curves of the paper are pictures, so only the numbers in its text and those "
        "behind its figure of the chain walk can be compared. The figure shows one set of samples; "
        "our numbers are means over runs or sample sets with 95% intervals, from "
        "[claims.json](claims.json).",
        "",
        *markdown(("number", "in the paper", "where", "measured here", "runs"), rows),
        *(["", CLIPPED] if any(measured.endswith("†") for *_, measured, _ in rows) else []),
    ]
    return "\n".join([*lines, ""])


def _findings(
    stated: Stated, findings: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The findings that a number is about, each with a name."""
    about = [f for f in findings if f["what"].startswith(stated.finding)]
    counted = [f for f in about if f["counts"]] or about
    for finding in counted:
        setting = finding["what"].removeprefix(stated.finding).partition(":")[0].strip(", ")
        yield f"{stated.what} ({setting})" if len(about) > 1 else stated.what, finding
