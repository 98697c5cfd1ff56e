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
    env: options.EnvironmentOption = None,
    env_set: options.EnvironmentSettings = None,
    wrap: options.Wrap = None,
) -> None:
    """Write a saved agent or policy for other programs, as JSON, a Python module or ONNX."""
    loaded = parsing.load(saved, env, parsing.assignments("--env-set", env_set), wrap)
    policy = loaded.policy()
    policy.export(out, std or None)
    print(f"{out}: {policy.actions} actions, {policy.features.size} features each")
