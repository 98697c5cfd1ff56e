"""``rblspi collect``: let a policy act, and log what happens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import typer

from rblspi.cli import options, parsing
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
    arguments = parsing.assignments("--env-set", env_set)
    environment = parsing.environment(env, arguments, wrap)
    act = _act(policy, explore, environment)
    from rblspi.data import ParquetWriter
    from rblspi.rollout import collect as run

    origin = {
        "environment": None if environment.spec is None else environment.spec.id,
        "arguments": arguments,
        "policy": policy,
        "seed": seed,
    }
    start = time.perf_counter()
    with ParquetWriter(out, origin) as writer, progress(transitions, quiet) as tell:
        for chunk in run(environment, transitions, act, seed):
            writer.write(chunk)
            tell(writer.rows, f"collecting, {writer.rows:,} transitions")
    seconds = time.perf_counter() - start
    print(f"{out}: {writer.rows:,} transitions in {seconds:.1f} s")


def _act(policy: str, explore: bool, environment: gym.Env[Any, Any]) -> Act | None:
    if policy == "random":
        return None
    chosen = parsing.load(Path(policy), environment).policy(explore)
    return lambda seen, **masks: chosen.predict(seen, deterministic=not explore, **masks)[0]
