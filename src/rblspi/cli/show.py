"""``rblspi show``: what a saved agent has learnt, in numbers and in maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rblspi.cli import words

if TYPE_CHECKING:
    from rblspi.agents import Agent


def show(
    agent: Annotated[Path, typer.Argument(help="agent.npz, or the folder it is in.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder for the pictures.",
            show_default="beside the agent",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="The observation that slices go through, as 0,0.5,...",
            show_default="the middle of what the agent visits",
        ),
    ] = None,
    resolution: Annotated[int, typer.Option(min=2, max=1000, help="Points a side.")] = 121,
    calibration: Annotated[
        bool,
        typer.Option("--calibration", help="How often the true value is in the stated interval."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes that are played.")] = 0,
    env: Annotated[
        str | None,
        typer.Option(metavar="ENV_ID", help="Another environment; module:EnvId imports first."),
    ] = None,
    env_set: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the environment; repeatable."),
    ] = None,
) -> None:
    """Print a saved agent's settings and write maps of value, uncertainty and policy."""
    path = words.agent_file(agent)
    loaded = words.load_agent(path, env, words.assignments("--env-set", env_set or []))
    folder = out or path.parent
    folder.mkdir(parents=True, exist_ok=True)
    _print_settings(loaded)
    from rblspi.report import ink, maps

    point = None if at is None else _numbers(at)
    with ink.style():
        figure = maps.draw(maps.compute(loaded, resolution=resolution, at=point, seed=seed))
        picture, _ = ink.save(figure, folder / "maps")
    print(f"maps: {picture}")
    if calibration:
        from rblspi.report import calibration as report

        result = report.calibrate(loaded, seed=seed)
        with ink.style():
            picture, _ = ink.save(report.draw(result), folder / "calibration")
        print(report.sentence(result))
        print(f"calibration: {picture}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--at {text} must be numbers with commas between them") from None


def _print_settings(agent: Agent) -> None:
    from rich.console import Console
    from rich.table import Table

    from rblspi.agents import RBLSPI

    name = "an environment without an id" if agent.env.spec is None else agent.env.spec.id
    table = Table(title=f"{type(agent).__name__} on {name}", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    rows = {"basis": agent.basis, "weights": agent.actions * agent.features.size}
    rows |= {"steps": f"{agent.num_timesteps:,}", "episodes": f"{len(agent.episodes):,}"}
    if len(agent.episodes):
        length, earned = agent.episodes[-100:].mean(axis=0)
        rows["last 100 episodes"] = f"return {earned:.4g}, length {length:.4g}"
    from rich.text import Text

    rows["exploration"] = ", ".join(f"{k} {v:.2g}" for k, v in agent.diagnostics().items())
    for key, shown in (rows | agent.get_parameters()).items():
        number = f"{shown:.4g}" if isinstance(shown, float) else str(shown)
        if shown is None:
            number = "from the data" if isinstance(agent, RBLSPI) else "none"
        table.add_row(key, Text(number))
    Console().print(table)
