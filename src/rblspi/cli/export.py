"""``rblspi export``: a saved policy for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rblspi.cli import options, parsing


def export(
    saved: options.SavedArgument,
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
    policy = parsing.load(saved).policy()
    policy.export(out, std or None)
    print(f"{out}: {policy.actions} actions, {policy.features.size} features each")
