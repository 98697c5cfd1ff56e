"""``rblspi collect``: let a policy act, and log the transitions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import typer

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.cli.saved import Selection, environment
from rblspi.core.progress import progress

if TYPE_CHECKING:
    from rblspi.rollout.steps import Act


def collect(
    env: options.EnvironmentArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.parquet")],
    transitions: Annotated[int, typer.Option(min=1)] = 100_000,
    policy: Annotated[
        str, typer.Option(metavar="random|SAVED", help="Random actions, or a saved policy's.")
    ] = "random",
    explore: options.Explore = False,
    seed: options.Seed = 0,
    env_set: options.EnvironmentSettings = None,
    wrap: options.Wrap = None,
    quiet: options.Quiet = False,
) -> None:
    """Write transitions to a Parquet file, for rblspi fit.

    The columns are state_0, state_1, ..., action (counted from 0), reward, next_state_0, ...,
    terminated and truncated.
    """
    if out.suffix != ".parquet":
        raise ValueError(f"--out {out} must end in .parquet")
    made = environment(env, env_set, wrap)
    act = _act(policy, explore, made)
    from rblspi.data import ParquetWriter
    from rblspi.rollout import collect as run

    origin = {
        "environment": None if made.spec is None else made.spec.id,
        "arguments": dict(env_set or ()),
        "policy": policy,
        "seed": seed,
    }
    start = time.perf_counter()
    with ParquetWriter(out, origin) as writer, progress(transitions, quiet) as tell:
        for chunk in run(made, transitions, act, seed):
            writer.write(chunk)
            tell(writer.rows, f"collecting, {writer.rows:,} transitions")
    seconds = time.perf_counter() - start
    print(f"{out}: {writer.rows:,} transitions in {seconds:.1f} s")


def _act(policy: str, explore: bool, env: gym.Env[Any, Any]) -> Act | None:
    if policy == "random":
        return None
    from rblspi.rollout.evaluate import act_of

    return act_of(Selection(Path(policy)).load(env).policy(explore), explore)


COMMAND = Command(collect, "CartPole-v1 --transitions 10000 --out logs.parquet")
