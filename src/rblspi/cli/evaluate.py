"""``rblspi evaluate``: how good a saved agent is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from rblspi.cli import words


def evaluate(
    agent: Annotated[Path, typer.Argument(help="agent.npz, or the folder it is in.")],
    episodes: Annotated[int, typer.Option(min=1)] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the environment.")] = 0,
    explore: Annotated[
        bool, typer.Option("--explore", help="Act as in training, not by the best estimate.")
    ] = False,
    env: Annotated[
        str | None,
        typer.Option(metavar="ENV_ID", help="Another environment; module:EnvId imports first."),
    ] = None,
    env_set: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the environment; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Let a saved agent act without learning, and report mean return and length."""
    loaded = words.load_agent(agent, env, words.assignments("--env-set", env_set or []))
    from rblspi.agents.evaluation import evaluate as run

    result = run(loaded, episodes=episodes, deterministic=not explore, seed=seed)
    if as_json:
        numbers = {"return": result.mean_return, "length": result.mean_length}
        print(
            json.dumps(
                {"episodes": episodes, "seed": seed}
                | {name: _finite(interval._asdict()) for name, interval in numbers.items()}
            )
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{episodes} episodes of {agent}")
    for heading in ("", "mean ± 95%", "lowest", "median", "highest"):
        table.add_column(heading, justify="right" if heading else "left")
    import numpy as np

    for name, interval, values in (
        ("return", result.mean_return, result.returns),
        ("length", result.mean_length, result.lengths),
    ):
        low, middle, high = np.quantile(values, (0.0, 0.5, 1.0))
        table.add_row(name, str(interval), f"{low:.4g}", f"{middle:.4g}", f"{high:.4g}")
    Console().print(table)


def _finite(numbers: dict[str, float]) -> dict[str, float | None]:
    """JSON has no infinity: the ends of an interval from one episode are null."""
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}
