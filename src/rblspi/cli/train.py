"""``rblspi train``: learn in an environment, live on the screen, and keep what was learnt."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rblspi.cli import completion, options, parsing
from rblspi.cli import config as configuration
from rblspi.cli.keeping import CHECKPOINT_EVERY, keeping
from rblspi.core import check
from rblspi.core.files import locked
from rblspi.core.progress import duration, say

if TYPE_CHECKING:
    from rblspi.online import Agent

DEFAULT_TIMESTEPS = 50_000
#: seconds of computing above which a run says beforehand what it will take
LONG = 60.0


class Plan(NamedTuple):
    """What to run, from the command line and the file of ``--config`` together."""

    environment: str | None
    algorithm: str | None
    basis: str | None
    episodes: int | None
    timesteps: int | None
    seed: int | None
    settings: dict[str, Any]
    env_settings: dict[str, Any]
    wrap: list[str] | None
    save: Path | None
    tensorboard: bool
    resume: Path | None
    overwrite: bool
    checkpoint_every: int | None
    checkpoints: int | None
    eval_every: int | None
    eval_episodes: int | None

    @property
    def goes_on(self) -> bool:
        """Whether the agent goes on in its own folder, which has the log of its episodes."""
        if self.resume is None or self.save is None:
            return False
        return parsing.saved_file(self.resume).resolve() == (self.save / parsing.AGENT).resolve()


def train(
    env: options.OptionalEnvironmentArgument = None,
    algo: Annotated[
        str | None,
        typer.Option(
            help="See rblspi list.",
            show_default="opsrl for discrete observations, fitted-rmax for one to four numbers, "
            "else, and with --basis, optimistic-lsvi",
            autocompletion=completion.online_algorithms,
        ),
    ] = None,
    basis: options.BasisOption = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Learn for so many episodes.")] = None,
    timesteps: Annotated[
        int | None,
        typer.Option(min=1, help="Learn for so many steps.", show_default=f"{DEFAULT_TIMESTEPS:,}"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    set_: options.Settings = None,
    env_option: options.EnvironmentOption = None,
    env_set: options.EnvironmentSettings = None,
    wrap: options.Wrap = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Settings; what is typed overrides it.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write agent.npz, settings.toml and monitor.csv there."),
    ] = None,
    tensorboard: Annotated[
        bool | None,
        typer.Option("--tensorboard", help="Log for TensorBoard in DIR/tensorboard as well."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="AGENT",
            help="Go on with a saved agent, in its folder unless --save names another.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the agent that is in DIR already.")
    ] = False,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(min=1, metavar="STEPS", help="Keep the agent after every so many steps, too."),
    ] = None,
    checkpoints: Annotated[
        int | None, typer.Option(min=1, help="So many of these are kept.", show_default="3")
    ] = None,
    eval_every: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="STEPS",
            help="Evaluate the greedy policy after every so many steps; the best is best.npz.",
        ),
    ] = None,
    eval_episodes: Annotated[
        int | None, typer.Option(min=1, help="Episodes of an evaluation.", show_default="10")
    ] = None,
    save_every: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            metavar="SECONDS",
            help="Save the agent so often meanwhile.",
            show_default=f"{CHECKPOINT_EVERY:g}",
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Train an agent. Ctrl-C stops and keeps what was learnt.

    Then look at it: rblspi explore DIR, rblspi watch DIR, rblspi evaluate DIR. The progress bar
    shows the mean return and length of the latest 100 episodes, as the agent explores, and how wide
    its exploration still is: relative_std, the spread of sampled weights relative to their mean,
    epsilon, the probability of a random action, or for tables the share of what was tried.
    """
    plan = _plan(
        {
            "environment": _one_of(env, env_option),
            "algorithm": algo,
            "basis": basis,
            "episodes": episodes,
            "timesteps": timesteps,
            "seed": seed,
            "save": None if save is None else str(save),
            "tensorboard": tensorboard,
            "resume": resume,
            "overwrite": overwrite,
            "wrap": wrap,
            "checkpoint_every": checkpoint_every,
            "checkpoints": checkpoints,
            "eval_every": eval_every,
            "eval_episodes": eval_episodes,
        },
        parsing.assignments("--set", set_),
        parsing.assignments("--env-set", env_set),
        {} if config is None else configuration.read(config),
    )
    with ExitStack() as stack:
        if plan.goes_on:  # then nobody saves a newer agent than the one that is read
            _take_folder(plan, stack)
        agent = _new_agent(plan) if resume is None else _saved_agent(plan, resume)
        if not plan.goes_on:  # then the folder may have to be made, which is done after all checks
            _take_folder(plan, stack)
        _learn(agent, plan, save_every, quiet, stack)


def _one_of(argument: str | None, option: str | None) -> str | None:
    """The environment, which may be named in either way, as for the other commands."""
    if argument is not None and option is not None and argument != option:
        raise ValueError(f"{argument} and --env {option} name two environments: name one")
    return option if argument is None else argument


def _take_folder(plan: Plan, stack: ExitStack) -> None:
    """Keep other processes from the folder, and refuse to replace an agent without being told."""
    if plan.save is None:
        return
    stack.enter_context(locked(plan.save))
    if (plan.save / parsing.AGENT).exists() and not plan.goes_on and not plan.overwrite:
        raise ValueError(
            f"there is an agent in {plan.save} already: --resume {plan.save} goes on with it, "
            "--overwrite replaces it"
        )


def _learn(
    agent: Agent, plan: Plan, save_every: float | None, quiet: bool, stack: ExitStack
) -> None:
    if plan.save is not None:
        if plan.goes_on:
            say(f"going on in {plan.save} after {agent.num_timesteps:,} steps")
        _write_settings(agent, plan, plan.save)
    _say_cost(agent, plan.timesteps)
    file = None if plan.save is None else plan.save / parsing.AGENT
    callbacks = [stack.enter_context(log) for log in _logs(agent, plan)]
    with keeping(agent, file, save_every) as interrupted:
        start = time.perf_counter()
        if not interrupted():
            agent.learn(
                plan.timesteps,
                [*callbacks, lambda _: not interrupted()],
                progress_bar=not quiet,
                reset_num_timesteps=False,
                episodes=plan.episodes,
            )
        seconds = time.perf_counter() - start
    _summarise(agent, seconds, plan, interrupted())
    if interrupted():
        raise typer.Exit(130)


def _say_cost(agent: Agent, steps: int | None) -> None:
    """Warn of a run that takes long because of its many weights."""
    cost = agent.cost()
    seconds = cost.seconds_a_step * (DEFAULT_TIMESTEPS if steps is None else steps)
    if seconds > LONG:
        say(f"{cost}. {'All' if steps else f'{DEFAULT_TIMESTEPS:,}'} steps: {duration(seconds)}")


def _plan(
    given: dict[str, Any], settings: dict[str, Any], arguments: dict[str, Any], file: dict[str, Any]
) -> Plan:
    """What the command line gives overrides the file."""
    merged = file | {name: value for name, value in given.items() if value is not None}
    for name, other in (("episodes", "timesteps"), ("timesteps", "episodes")):
        if given[name] is not None and given[other] is None:
            merged.pop(other, None)  # the file's goal gives way to the one that was typed
    for name in ("episodes", "timesteps"):
        if name in merged:
            check.count(name, merged[name])
    if "episodes" not in merged:
        merged.setdefault("timesteps", DEFAULT_TIMESTEPS)
    own = None if given["resume"] is None else _folder_of(given["resume"])
    folder = merged.get("save") or own
    fields: dict[str, Any] = {name: merged.get(name) for name in Plan._fields}
    plan = Plan(
        **fields
        | {
            "settings": file.get("settings", {}) | settings,
            "env_settings": file.get("env_settings", {}) | arguments,
            "save": None if folder is None else Path(folder),
            "tensorboard": merged.get("tensorboard", False),
        }
    )
    for name in ("checkpoint_every", "eval_every"):
        if getattr(plan, name) is not None and plan.save is None:
            raise ValueError(f"--{name.replace('_', '-')} needs a folder: add --save DIR")
    if plan.tensorboard and plan.save is None:
        raise ValueError("--tensorboard needs a folder to write to: add --save DIR")
    if plan.save is not None and plan.save.exists() and not plan.save.is_dir():
        raise ValueError(f"--save {plan.save} is a file: name a folder")
    return plan


def _folder_of(resume: Path) -> Path | None:
    """The folder in which a saved agent goes on unless the user names another."""
    file = parsing.saved_file(resume)
    return file.parent if file.name == parsing.AGENT else None


def _new_agent(plan: Plan) -> Agent:
    import numpy as np

    from rblspi.features import basis_from_text
    from rblspi.registry import algorithm, default_for
    from rblspi.rollout.steps import observe_random_actions

    if plan.environment is None:
        raise ValueError("name an environment: rblspi train ENV_ID, one of rblspi list")
    named = None if plan.algorithm is None else algorithm(plan.algorithm)
    if named is not None and not named.online:
        raise ValueError(f"{named.name} learns from logged transitions: use rblspi fit DATA")
    basis = None if plan.basis is None else basis_from_text(plan.basis)
    env = parsing.environment(plan.environment, plan.env_settings, plan.wrap)
    scout = partial(observe_random_actions, env, np.random.SeedSequence(0))
    record = named or default_for(env.observation_space, scout, basis)
    record.require_settings(plan.settings)
    agent: Agent = record.load()(env, basis, seed=plan.seed, **plan.settings)
    return agent


def _saved_agent(plan: Plan, path: Path) -> Agent:
    typed = {"--algo": plan.algorithm, "--basis": plan.basis, "--seed": plan.seed}
    wrong = [f"{name} {value}" for name, value in typed.items() if value is not None]
    wrong += [f"--set {name}={value}" for name, value in plan.settings.items()]
    if wrong:
        raise ValueError(f"--resume keeps the agent's own settings: leave out {', '.join(wrong)}")
    actor: Any = parsing.load(path, plan.environment, plan.env_settings, plan.wrap).actor
    if not hasattr(actor, "learn"):
        raise ValueError(f"{path} holds a policy, which does not learn online: fit again")
    agent: Agent = actor
    return agent


def _logs(agent: Agent, plan: Plan) -> Iterator[Any]:
    from rblspi.online.callbacks import (
        CheckpointCallback,
        EvalCallback,
        MonitorFile,
        TensorBoard,
    )

    if plan.save is not None:
        monitor = plan.save / "monitor.csv"
        before = len(agent.episodes) if plan.goes_on else None
        yield MonitorFile(monitor, _identifier(agent, plan), append_to=before)
        if plan.tensorboard:
            yield TensorBoard(plan.save / "tensorboard")
        if plan.checkpoint_every:
            keep = plan.checkpoints or 3
            yield CheckpointCallback(plan.checkpoint_every, plan.save / "checkpoints", keep=keep)
        if plan.eval_every:
            episodes = plan.eval_episodes or 10
            yield EvalCallback(
                n_eval_episodes=episodes,
                eval_freq=plan.eval_every,
                best_model_save_path=plan.save,
                resume=plan.goes_on,
            )


def _write_settings(agent: Agent, plan: Plan, folder: Path) -> None:
    """Every setting of the run, defaults included: ``--config`` with this file repeats it.

    The goals of a resumed agent are counted from its very beginning, as if it had never stopped;
    how much of that was done before is in the table ``resumed``.
    """
    from importlib.metadata import version

    from rblspi.features import basis_to_text
    from rblspi.registry import name_of

    settings = agent.get_parameters()
    seed = settings.pop("seed")
    steps, episodes = agent.num_timesteps, len(agent.episodes)  # zero unless it was resumed
    before = {"agent": str(plan.resume), "timesteps": steps, "episodes": episodes}
    packages = ("rblspi", "gymnasium", "numpy", "numba")
    configuration.write(
        folder / "settings.toml",
        {
            "environment": _identifier(agent, plan),
            "algorithm": name_of(type(agent)),
            "basis": basis_to_text(agent.basis),
            "episodes": None if plan.episodes is None else episodes + plan.episodes,
            "timesteps": None if plan.timesteps is None else steps + plan.timesteps,
            "seed": seed,
            "tensorboard": plan.tensorboard,
            "wrap": plan.wrap,
            "checkpoint_every": plan.checkpoint_every,
            "checkpoints": plan.checkpoints,
            "eval_every": plan.eval_every,
            "eval_episodes": plan.eval_episodes,
            "settings": settings,
            "env_settings": _env_settings(agent) | plan.env_settings,
            "resumed": None if plan.resume is None else before,
            "versions": {
                "python": sys.version.split()[0],
                **{name: version(name) for name in packages},
            },
        },
    )


def _identifier(agent: Agent, plan: Plan) -> str | None:
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


def _summarise(agent: Agent, seconds: float, plan: Plan, interrupted: bool) -> None:
    folder, episodes = plan.save, agent.episodes[-100:]
    if interrupted:
        print("Stopped.")
    print(f"{agent.num_timesteps:,} steps in {len(agent.episodes):,} episodes, {seconds:.1f} s")
    if len(episodes):
        length, episode_return = episodes.mean(axis=0)
        print(f"last {len(episodes)} episodes: return {episode_return:.4g}, length {length:.4g}")
    if folder is not None:
        again = parsing.again(_identifier(agent, plan), plan.wrap)
        print(f"saved in {folder}: next, rblspi show {folder}{again}")
    else:
        print("not saved: next time add --save DIR")
