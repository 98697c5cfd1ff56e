"""``rblspi show``: show a saved agent or policy, in numbers and in maps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli.commands import Command
from rblspi.cli.options import Drawing, Log
from rblspi.cli.saved import Saved, Selection

if TYPE_CHECKING:
    from rblspi.online.agent import Agent
    from rblspi.policies import LinearPolicy


def show(
    saved: Selection,
    drawing: Drawing,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the pictures; by default, beside the file.",
        ),
    ] = None,
    resolution: Annotated[
        int, typer.Option(min=2, max=1000, help="Points along each side of a map.")
    ] = 121,
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration", help="Check how often the true value is in the stated interval."
        ),
    ] = False,
) -> None:
    """Print the settings of an agent or policy, and write maps of value, uncertainty and policy."""
    loaded = saved.load()
    folder = out or saved.file.parent
    folder.mkdir(parents=True, exist_ok=True)
    _print_settings(loaded.actor, loaded.policy())
    from rblspi.plotting import maps
    from rblspi.plotting.style import save, style

    computed = maps.compute(loaded.actor, drawing.domain(loaded), resolution=resolution)
    with style():
        picture, _ = save(maps.draw(computed), folder / "maps")
    print(f"maps: {picture}")
    if calibration:
        from rblspi.plotting.calibration import draw

        result = _calibrated(loaded, drawing)
        with style():
            picture, _ = save(draw(result), folder / "calibration")
        print(result)
        print(f"calibration: {picture}")


def _calibrated(loaded: Saved, drawing: Drawing) -> Any:
    """By simulation; for a policy that knows no environment, by held-out episodes of a log."""
    policy = loaded.policy()
    if loaded.env is not None or policy.environment is not None:
        from rblspi.rollout import calibrate

        return calibrate(loaded.actor, loaded.env, seed=drawing.seed)
    if drawing.data is None:
        raise ValueError(
            "--calibration needs what is true: add --data LOG to compare with held-out episodes of "
            "a log, or --env ENV_ID to simulate"
        )
    from rblspi.offline import calibrate_on_log

    per = policy.provenance.get("settings", {}).get("discount_per")
    log = Log(drawing.data, drawing.columns, per, quiet=True).open()
    space = policy.observation_space
    return calibrate_on_log(log, policy.basis, discount=policy.discount, observation_space=space)


def _print_settings(actor: Agent | LinearPolicy, policy: LinearPolicy) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rblspi.core.archive import printable
    from rblspi.online.agent import Agent

    name = "logs" if policy.environment is None else policy.environment["id"]
    title = f"{policy.provenance.get('algorithm')} on {name or 'an environment without an id'}"
    table = Table(title=Text(printable(title)), show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    rows: dict[str, Any] = {"basis": policy.basis, "weights": len(policy.weights)}
    rows["transitions"] = f"{policy.provenance.get('transitions', 0):,}"
    if isinstance(actor, Agent):
        rows["episodes"] = f"{len(actor.episodes):,}"
        if len(actor.episodes):
            length, episode_return = actor.episodes[-100:].mean(axis=0)
            rows["last 100 episodes"] = f"return {episode_return:.4g}, length {length:.4g}"
        if diagnostics := actor.diagnostics():
            rows["exploration"] = ", ".join(f"{k} {v:.2g}" for k, v in diagnostics.items())
    for key, shown in (rows | dict(policy.provenance.get("settings", {}))).items():
        number = f"{shown:.4g}" if isinstance(shown, float) else str(shown)
        words = "from the data" if shown is None else printable(number)
        table.add_row(Text(printable(str(key))), Text(words))
    Console().print(table)


COMMAND = Command(show, "runs/pole --calibration")
