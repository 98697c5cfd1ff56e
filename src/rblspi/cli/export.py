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
        typer.Argument(
            metavar="FILE",
            help="policy.json, policy.py: a module without packages, or policy.onnx.",
        ),
    ],
    std: Annotated[
        bool, typer.Option("--std", help="Write what standard deviations need, too.")
    ] = False,
) -> None:
    """Write a saved agent or policy for other programs, as JSON, a Python module or ONNX."""
    loaded = saved.load()
    policy = loaded.policy()
    policy.export(out, std or None)
    print(f"{out}: {policy.actions} actions, {policy.features.size} features each")


COMMAND = Command(export, "runs/logs policy.json")
