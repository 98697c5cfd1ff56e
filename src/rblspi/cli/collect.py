"""``rblspi collect``: let a policy act, and write down what happens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium as gym
import typer

from rblspi.cli import words

if TYPE_CHECKING:
    from rblspi.datasets.collect import Policy


def collect(
    env: Annotated[
        str,
        typer.Argument(metavar="ENV_ID", help="Any Gymnasium id; module:EnvId imports first."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.parquet")],
    transitions: Annotated[int, typer.Option(min=1)] = 100_000,
    policy: Annotated[
        str, typer.Option(metavar="random|AGENT", help="Random actions, or a saved agent's.")
    ] = "random",
    explore: Annotated[
        bool, typer.Option("--explore", help="Let the agent act as in training.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    env_set: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the environment; repeatable."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Write transitions to a Parquet file, for rblspi fit.

    The columns are state_0, state_1, ..., action (counted from 0), reward, next_state_0, ...,
    terminated and truncated.
    """
    if out.suffix != ".parquet":
        raise ValueError(f"--out {out} must end in .parquet")
    arguments = words.assignments("--env-set", env_set or [])
    environment = words.environment(env, **arguments)
    chooser = _chooser(policy, explore, environment)
    from rblspi.cli.fit import bar_of_rows
    from rblspi.datasets import ParquetWriter
    from rblspi.datasets import collect as run

    origin = {
        "environment": None if environment.spec is None else environment.spec.id,
        "arguments": arguments,
        "policy": policy,
        "seed": seed,
    }
    start = time.perf_counter()
    with ParquetWriter(out, origin) as writer, bar_of_rows(transitions, quiet) as tell:
        for chunk in run(environment, transitions, chooser, seed):
            writer.write(*chunk)
            tell(chunk.transitions.size, "collecting")
    seconds = time.perf_counter() - start
    print(f"{out}: {writer.rows:,} transitions in {seconds:.1f} s")


def _chooser(policy: str, explore: bool, environment: gym.Env[Any, Any]) -> Policy | None:
    if policy == "random":
        return None
    agent = words.load_agent(Path(policy), environment)

    def choose(observation: Any) -> int:
        return int(agent.predict(observation, deterministic=not explore)[0])

    return choose
