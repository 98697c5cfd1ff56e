"""The still page of ``rblspi explore``, for an agent that is trained while the site is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(app: Any, error: Exception | None) -> None:
    """Write the page into the site."""
    if error is not None or app.builder.format != "html":
        return
    from rblspi import FittedRmax
    from rblspi.plotting import explorer

    agent = FittedRmax("CartPole-v1", seed=0).learn(5_000)
    explorer.write(agent, Path(app.outdir) / "_static" / "cart_pole.html")


def setup(app: Any) -> dict[str, bool]:
    """Write the page when all others are there."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
