"""The plan of a training run: the command line and the file of ``--config`` together.

``settings.toml``, which is written beside the results, is such a file and repeats the run. Its
fields have the same names as in files of experiments.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from rblspi.cli import options
from rblspi.cli.saved import AGENT, Selection
from rblspi.core import check, toml
from rblspi.core.files import write_text
from rblspi.registry import nearest

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

DEFAULT_TIMESTEPS = 50_000

_GOALS = ("episodes", "timesteps")
_TABLES = ("settings", "env_settings")
#: fields that are written for people to read
_INFORMATION = ("resumed", "versions")
#: fields of a file, their types and the words for them
_FIELDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("environment", "algorithm", "basis", "save"), (str, "a text")),
    **dict.fromkeys((*_GOALS, "seed", "checkpoint_every", "checkpoints"), (int, "a whole number")),
    **dict.fromkeys(("eval_every", "eval_episodes"), (int, "a whole number")),
    "tensorboard": (bool, "true or false"),
    "wrap": (list, "a list of texts"),
    **dict.fromkeys((*_TABLES, *_INFORMATION), (dict, "a table")),
}


class Plan(NamedTuple):
    """The options of ``rblspi train`` that decide how an agent learns and which files are kept."""

    environment: options.OptionalEnvironmentArgument = None
    algorithm: Annotated[
        str | None,
        Option(
            "--algo",
            help="See rblspi list.",
            show_default="opsrl for discrete observations, fitted-rmax for one to four numbers, "
            "deep-q for more (needs JAX), else, and with --basis, optimistic-lsvi",
            autocompletion=options.algorithms(online=True),
        ),
    ] = None
    basis: options.BasisOption = None
    episodes: Annotated[int | None, Option(min=1, help="Learn for this many episodes.")] = None
    timesteps: Annotated[
        int | None,
        Option(min=1, help="Learn for this many steps.", show_default=f"{DEFAULT_TIMESTEPS:,}"),
    ] = None
    seed: Annotated[int | None, Option(min=0, help="Seed of all random numbers.")] = None
    settings: options.Settings = None
    env: options.EnvironmentOption = None
    env_settings: options.EnvironmentSettings = None
    wrap: options.Wrap = None
    save: Annotated[
        Path | None,
        Option(metavar="DIR", help="Write agent.npz, settings.toml and monitor.csv there."),
    ] = None
    tensorboard: Annotated[
        bool | None,
        Option("--tensorboard", help="Log for TensorBoard in DIR/tensorboard as well."),
    ] = None
    resume: Annotated[
        Path | None,
        Option(
            metavar="AGENT",
            help="Go on with a saved agent, in its folder unless --save names another.",
        ),
    ] = None
    overwrite: Annotated[
        bool, Option("--overwrite", help="Replace the agent that is in DIR already.")
    ] = False
    checkpoint_every: Annotated[
        int | None,
        Option(min=1, metavar="STEPS", help="Keep a copy of the agent every STEPS steps."),
    ] = None
    checkpoints: Annotated[
        int | None, Option(min=1, help="The number of these to keep.", show_default="3")
    ] = None
    eval_every: Annotated[
        int | None,
        Option(
            min=1,
            metavar="STEPS",
            help="Evaluate the greedy policy every STEPS steps; the best is best.npz.",
        ),
    ] = None
    eval_episodes: Annotated[
        int | None, Option(min=1, help="Episodes of an evaluation.", show_default="10")
    ] = None

    @property
    def saved(self) -> Selection | None:
        """The agent that goes on, if one does."""
        if self.resume is None:
            return None
        return Selection(self.resume, self.environment, self.env_settings, self.wrap)

    @property
    def goes_on(self) -> bool:
        """Whether the agent goes on in its own folder, which has the log of its episodes."""
        if self.saved is None or self.save is None:
            return False
        return self.saved.file.resolve() == (self.save / AGENT).resolve()

    def completed(self, config: Path | None) -> Plan:
        """The plan with its folder; a file fills in the options that were not typed."""
        if None not in (self.environment, self.env) and self.environment != self.env:
            raise ValueError(
                f"{self.environment} and --env {self.env} name two environments: name one"
            )
        typed = self._replace(environment=self.environment or self.env, env=None)._asdict()
        given = {name: value for name, value in typed.items() if value is not None}
        file = {} if config is None else read(config)
        if ("episodes" in given) != ("timesteps" in given):
            file = {name: value for name, value in file.items() if name not in _GOALS}
        merged = file | given
        for table in _TABLES:
            both = file.get(table, {}) | dict(given.get(table, ()))
            merged[table] = [options.Assignment(*item) for item in both.items()]
        for goal in _GOALS:
            if goal in merged:
                check.count(goal, merged[goal])
        if "episodes" not in merged:
            merged.setdefault("timesteps", DEFAULT_TIMESTEPS)
        if "save" in merged:
            merged["save"] = Path(merged["save"])
        elif self.saved is not None and self.saved.file.name == AGENT:
            merged["save"] = self.saved.file.parent
        plan = Plan(**merged)
        plan._require_folder()
        return plan

    def _require_folder(self) -> None:
        """Raise an error if requested files have no folder."""
        for name in ("checkpoint_every", "eval_every", "tensorboard"):
            if getattr(self, name) and self.save is None:
                raise ValueError(f"--{name.replace('_', '-')} needs a folder: add --save DIR")
        if self.save is not None and self.save.exists() and not self.save.is_dir():
            raise ValueError(f"--save {self.save} is a file: name a folder")


def read(path: Path) -> dict[str, Any]:
    """Settings of a file, every name and type checked."""
    from rblspi.experiments.config import read_toml

    found = read_toml(path)
    for name, value in found.items():
        if name not in _FIELDS:
            raise ValueError(f"{path} has an unknown field {name!r}: {nearest(name, _FIELDS)}")
        kind, words = _FIELDS[name]
        if type(value) is not kind:
            raise ValueError(f"{path}: {name} = {value!r} must be {words}")
    return {name: value for name, value in found.items() if name not in _INFORMATION}


def write(path: Path, settings: Mapping[str, Any]) -> None:
    """Write settings that `read` understands; None is left out."""
    tables = {name: table for name, table in settings.items() if isinstance(table, Mapping)}
    lines = toml.assignments({n: v for n, v in settings.items() if n not in tables})
    for name, table in tables.items():
        lines += ["", f"[{name}]", *toml.assignments(table)]
    write_text(path, "\n".join(lines) + "\n")


def write_settings(agent: Agent, plan: Plan, folder: Path) -> None:
    """Write every setting of the run to ``settings.toml``, defaults included.

    The goals of a resumed agent are counted from its first step, as if it had never stopped; the
    table ``resumed`` has the part that was done before.
    """
    from importlib.metadata import version

    from rblspi.features import basis_to_text
    from rblspi.registry import name_of

    settings = agent.get_parameters()
    seed = settings.pop("seed")
    done = {"timesteps": agent.num_timesteps, "episodes": len(agent.episodes)}
    goals = {goal: getattr(plan, goal) for goal in _GOALS}
    versions = {name: version(name) for name in ("rblspi", "gymnasium", "numpy", "numba")}
    written = plan._asdict() | {
        "environment": identifier(agent, plan),
        "algorithm": name_of(type(agent)),
        "basis": basis_to_text(agent.basis),
        **{goal: None if more is None else done[goal] + more for goal, more in goals.items()},
        "seed": seed,
        "settings": settings,
        "env_settings": _env_settings(agent) | dict(plan.env_settings or ()),
        "resumed": None if plan.resume is None else {"agent": str(plan.resume), **done},
        "versions": {"python": sys.version.split()[0], **versions},
    }
    write(folder / "settings.toml", {name: written[name] for name in _FIELDS if name != "save"})


def identifier(agent: Agent, plan: Plan) -> str | None:
    """The name of the environment as it was typed, with its module; else its id."""
    if plan.environment is not None or agent.env.spec is None:
        return plan.environment
    from rblspi.environments.lookup import describe, typed_name

    return typed_name(describe(agent.env))


def _env_settings(agent: Agent) -> dict[str, Any]:
    """Arguments of the environment that differ from those registered for its id."""
    import gymnasium as gym

    from rblspi.environments.lookup import describe

    description = describe(agent.env)
    arguments: dict[str, Any] = description["arguments"]
    registered, limit = gym.registry.get(description["id"]), description["limit"]
    if registered is not None and registered.max_episode_steps != limit:
        arguments["max_episode_steps"] = -1 if limit is None else limit
    return arguments
