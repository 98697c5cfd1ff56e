"""The plan of a training run: the command line and the file of ``--config`` together.

``settings.toml``, which is written beside the results, is such a file and repeats the run. Its
fields have the names that files of experiments use as well.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rblspi.cli import parsing
from rblspi.core import check, toml
from rblspi.core.files import write_text
from rblspi.registry import nearest

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

DEFAULT_TIMESTEPS = 50_000

_GOALS = ("episodes", "timesteps")
_NUMBERS = (*_GOALS, "seed", "checkpoint_every", "checkpoints", "eval_every")
#: fields of a file, and their types
_FIELDS: dict[str, type] = {
    **dict.fromkeys(("environment", "algorithm", "basis", "save"), str),
    **dict.fromkeys((*_NUMBERS, "eval_episodes"), int),
    "tensorboard": bool,
    "wrap": list,
    **dict.fromkeys(("settings", "env_settings", "resumed", "versions"), dict),
}
#: fields that are written for people to read
_INFORMATION = ("resumed", "versions")
_WORDS = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list of texts",
    dict: "a table",
}


class Plan(NamedTuple):
    """What to run."""

    environment: str | None = None
    algorithm: str | None = None
    basis: str | None = None
    episodes: int | None = None
    timesteps: int | None = None
    seed: int | None = None
    settings: dict[str, Any] = {}  # noqa: RUF012
    env_settings: dict[str, Any] = {}  # noqa: RUF012
    wrap: list[str] | None = None
    save: Path | None = None
    tensorboard: bool = False
    resume: Path | None = None
    overwrite: bool = False
    checkpoint_every: int | None = None
    checkpoints: int | None = None
    eval_every: int | None = None
    eval_episodes: int | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the agent goes on in its own folder, which has the log of its episodes."""
        if self.resume is None or self.save is None:
            return False
        return parsing.saved_file(self.resume).resolve() == (self.save / parsing.AGENT).resolve()


def make_plan(options: Mapping[str, Any]) -> Plan:
    """Merge the options of the command with the file of ``--config``, which they override."""
    typed = {**options, "environment": _one_of(options["environment"], options["env"])}
    given = {name: typed[name] for name in Plan._fields if typed[name] is not None}
    file = {} if options["config"] is None else read(options["config"])
    if ("episodes" in given) != ("timesteps" in given):
        file = {name: value for name, value in file.items() if name not in _GOALS}
    merged = file | given
    for table, option in (("settings", "--set"), ("env_settings", "--env-set")):
        merged[table] = file.get(table, {}) | parsing.assignments(option, given.get(table))
    for goal in _GOALS:
        if goal in merged:
            check.count(goal, merged[goal])
    if "episodes" not in merged:
        merged.setdefault("timesteps", DEFAULT_TIMESTEPS)
    folder = merged.get("save") or _folder_of(given.get("resume"))
    plan = Plan(**merged | {"save": None if folder is None else Path(folder)})
    _require_folder(plan)
    return plan


def _one_of(argument: str | None, option: str | None) -> str | None:
    """The environment, which may be named in either way, as for the other commands."""
    if argument is not None and option is not None and argument != option:
        raise ValueError(f"{argument} and --env {option} name two environments: name one")
    return option if argument is None else argument


def _folder_of(resume: Path | None) -> Path | None:
    """The folder in which a saved agent goes on unless the user names another."""
    file = None if resume is None else parsing.saved_file(resume)
    return file.parent if file is not None and file.name == parsing.AGENT else None


def _require_folder(plan: Plan) -> None:
    """Raise an error if there is no folder for the files that the plan asks for."""
    for name in ("checkpoint_every", "eval_every", "tensorboard"):
        if getattr(plan, name) and plan.save is None:
            raise ValueError(f"--{name.replace('_', '-')} needs a folder: add --save DIR")
    if plan.save is not None and plan.save.exists() and not plan.save.is_dir():
        raise ValueError(f"--save {plan.save} is a file: name a folder")


# Files --------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """Settings of a file, every name and type checked."""
    from rblspi.experiments.config import read_toml

    found = read_toml(path)
    for name, value in found.items():
        if name not in _FIELDS:
            raise ValueError(f"{path} has an unknown field {name!r}: {nearest(name, _FIELDS)}")
        if type(value) is not _FIELDS[name]:
            raise ValueError(f"{path}: {name} = {value!r} must be {_WORDS[_FIELDS[name]]}")
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

    The goals of a resumed agent are counted from its very beginning, as if it had never stopped;
    the part that was done before is in the table ``resumed``.
    """
    from importlib.metadata import version

    from rblspi.features import basis_to_text
    from rblspi.registry import name_of

    settings = agent.get_parameters()
    seed = settings.pop("seed")
    done = {"timesteps": agent.num_timesteps, "episodes": len(agent.episodes)}
    goals = {goal: getattr(plan, goal) for goal in _GOALS}
    packages = ("rblspi", "gymnasium", "numpy", "numba")
    written = plan._asdict() | {
        "environment": identifier(agent, plan),
        "algorithm": name_of(type(agent)),
        "basis": basis_to_text(agent.basis),
        **{goal: None if more is None else done[goal] + more for goal, more in goals.items()},
        "seed": seed,
        "settings": settings,
        "env_settings": _env_settings(agent) | plan.env_settings,
        "resumed": None if plan.resume is None else {"agent": str(plan.resume), **done},
        "versions": {
            "python": sys.version.split()[0],
            **{name: version(name) for name in packages},
        },
    }
    write(folder / "settings.toml", {name: written[name] for name in _FIELDS if name != "save"})


def identifier(agent: Agent, plan: Plan) -> str | None:
    """The name of the environment as it was typed, with its module; else its id."""
    if plan.environment is not None or agent.env.spec is None:
        return plan.environment
    from rblspi.environments.lookup import describe, typed_name

    return typed_name(describe(agent.env))


def _env_settings(agent: Agent) -> dict[str, Any]:
    """What the environment was made with, apart from what is registered for its id."""
    import gymnasium as gym

    from rblspi.environments.lookup import describe

    description = describe(agent.env)
    arguments: dict[str, Any] = description["arguments"]
    registered, limit = gym.registry.get(description["id"]), description["limit"]
    if registered is not None and registered.max_episode_steps != limit:
        arguments["max_episode_steps"] = -1 if limit is None else limit
    return arguments
