"""``rblspi export``: a saved policy for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rblspi.cli.commands import Command
from rblspi.cli.saved import Selection


def export(
    saved: Selection,
    out: Annotated[
        Path,
        typer.Argument(metavar="FILE.onnx", help="A graph in float64 for ONNX Runtime."),
    ],
    std: Annotated[
        bool, typer.Option("--std", help="Let the graph compute standard deviations, too.")
    ] = False,
) -> None:
    """Write a saved agent or policy for other programs, as ONNX."""
    loaded = saved.load()
    policy = loaded.policy()
    policy.export(out, std)
    print(f"{out}: {policy.actions} actions, {policy.features.size} features each")


COMMAND = Command(export, "runs/logs policy.onnx")
