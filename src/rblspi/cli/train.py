"""``rblspi train``: learn in an environment, live on the screen, and keep what was learnt."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rblspi.cli import config as configuration
from rblspi.cli import words

if TYPE_CHECKING:
    from rblspi.agents import Agent

DEFAULT_TIMESTEPS = 50_000
DEFAULT_ALGORITHM = "rblspi"


class Plan(NamedTuple):
    """What to run, from the command line and the file of ``--config`` together."""

    env: str | None
    algo: str | None
    basis: str | None
    episodes: int | None
    timesteps: int | None
    seed: int | None
    settings: dict[str, Any]
    arguments: dict[str, Any]  # of the environment
    save: Path | None
    tensorboard: bool


def train(
    env: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV_ID",
            help="Any Gymnasium id; module:EnvId imports the module that registers it first.",
            show_default=False,
        ),
    ] = None,
    algo: Annotated[
        str | None, typer.Option(help="rblspi or online-lspi.", show_default=DEFAULT_ALGORITHM)
    ] = None,
    basis: Annotated[
        str | None,
        typer.Option(
            help='rbf:8, "RBFGrid(8, width=0.5)", fourier:3, ...: see rblspi list.',
            show_default="chosen for the environment",
        ),
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Learn for so many episodes.")] = None,
    timesteps: Annotated[
        int | None,
        typer.Option(min=1, help="Learn for so many steps.", show_default=f"{DEFAULT_TIMESTEPS:,}"),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A setting of the algorithm; may be repeated."
        ),
    ] = None,
    env_set: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="An argument of the environment; repeatable."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="The same names as here; the command line goes first."
        ),
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
        typer.Option(metavar="AGENT", help="Go on with a saved agent."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Train an agent. Ctrl-C stops and keeps what was learnt.

    Then look at it: rblspi show DIR, rblspi watch DIR, rblspi evaluate DIR.
    """
    plan = _plan(
        {
            "env": env,
            "algo": algo,
            "basis": basis,
            "episodes": episodes,
            "timesteps": timesteps,
            "seed": seed,
            "save": None if save is None else str(save),
            "tensorboard": tensorboard,
        },
        words.assignments("--set", set_ or []),
        words.assignments("--env-set", env_set or []),
        {} if config is None else configuration.read(config),
    )
    agent = _new_agent(plan) if resume is None else _old_agent(plan, resume)
    if plan.save is not None:
        plan.save.mkdir(parents=True, exist_ok=True)
        _write_settings(agent, plan, resume)
    with ExitStack() as stack:
        callbacks = [stack.enter_context(log) for log in _logs(agent, plan, resume)]
        stack.enter_context(_kept(agent, plan.save))
        interrupted = stack.enter_context(_stop_on_interrupt(agent))
        start = time.perf_counter()
        agent.learn(
            plan.timesteps,
            callbacks,
            progress_bar=not quiet,
            reset_num_timesteps=False,
            episodes=plan.episodes,
        )
        seconds = time.perf_counter() - start
    _summarise(agent, seconds, plan.save, interrupted())


def _plan(
    given: dict[str, Any], settings: dict[str, Any], arguments: dict[str, Any], file: dict[str, Any]
) -> Plan:
    """What the command line gives goes before the file."""
    merged = file | {name: value for name, value in given.items() if value is not None}
    for name, other in (("episodes", "timesteps"), ("timesteps", "episodes")):
        if given[name] is not None and given[other] is None:
            merged.pop(other, None)  # the file's goal gives way to the one that was typed
    for name in ("episodes", "timesteps"):
        if merged.get(name, 1) < 1:
            raise ValueError(f"{name} = {merged[name]} must be at least 1")
    if "episodes" not in merged:
        merged.setdefault("timesteps", DEFAULT_TIMESTEPS)
    folder = merged.get("save")
    plan = Plan(
        merged.get("env"),
        merged.get("algo"),
        merged.get("basis"),
        merged.get("episodes"),
        merged.get("timesteps"),
        merged.get("seed"),
        file.get("set", {}) | settings,
        file.get("env_set", {}) | arguments,
        None if folder is None else Path(folder),
        merged.get("tensorboard", False),
    )
    if plan.tensorboard and plan.save is None:
        raise ValueError("--tensorboard needs a folder to write to: add --save DIR")
    if plan.save is not None and plan.save.exists() and not plan.save.is_dir():
        raise ValueError(f"--save {plan.save} is a file: name a folder")
    return plan


def _new_agent(plan: Plan) -> Agent:
    if plan.env is None:
        raise ValueError("name an environment: rblspi train ENV_ID, one of rblspi list")
    kind: Any = words.algorithm(plan.algo or DEFAULT_ALGORITHM)
    settings = words.checked_settings(kind, plan.settings)
    basis = words.basis(plan.basis)
    env = words.environment(plan.env, **plan.arguments)
    agent: Agent = kind(env, basis, seed=plan.seed, **settings)
    return agent


def _old_agent(plan: Plan, path: Path) -> Agent:
    from rblspi.agents import ALGORITHMS

    typed = {"--algo": plan.algo, "--basis": plan.basis, "--seed": plan.seed}
    wrong = [f"{name} {value}" for name, value in typed.items() if value is not None]
    wrong += [f"--set {name}={value}" for name, value in plan.settings.items()]
    if wrong:
        raise ValueError(f"--resume keeps the agent's own settings: leave out {', '.join(wrong)}")
    agent = words.load_agent(path, plan.env, plan.arguments)
    if type(agent) not in ALGORITHMS.values():
        raise ValueError(f"{path} was fitted to data and does not learn online: fit again")
    return agent


def _logs(agent: Agent, plan: Plan, resume: Path | None) -> Iterator[Any]:
    from rblspi.agents.callbacks import MonitorFile, TensorBoard

    if plan.save is not None:
        monitor = plan.save / "monitor.csv"
        yield MonitorFile(monitor, _identifier(agent, plan), append=_goes_on_in(plan.save, resume))
        if plan.tensorboard:
            yield TensorBoard(plan.save / "tensorboard")


def _goes_on_in(folder: Path, resume: Path | None) -> bool:
    """Whether the folder has the episodes of the agent that goes on."""
    return (
        resume is not None
        and words.agent_file(resume).resolve() == (folder / "agent.npz").resolve()
    )


@contextmanager
def _kept(agent: Agent, folder: Path | None) -> Iterator[None]:
    """Save the agent afterwards, whatever ended the learning: an environment may fail, too."""
    try:
        yield
    except BaseException as error:
        if folder is not None:
            _forget_bad_numbers(agent)
            agent.save(folder / "agent.npz")
            error.add_note(f"What was learnt until then is saved in {folder}")
        raise
    if folder is not None:
        agent.save(folder / "agent.npz")


def _forget_bad_numbers(agent: Agent) -> None:
    """Clear what an episode that failed left behind: no file may hold a NaN.

    The next episode writes all of it anew before it is read.
    """
    place = agent.session.place
    if place.clock[0] < 0:
        for numbers in (place.state, place.x, place.y, place.earned):
            numbers[:] = 0.0


@contextmanager
def _stop_on_interrupt(agent: Agent) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C lets the agent finish what it is at; a second one breaks off."""
    pressed = False

    def stop(*_: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        agent.stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _write_settings(agent: Agent, plan: Plan, resume: Path | None) -> None:
    """Every setting of the run, defaults included: ``--config`` with this file repeats it.

    The goals of an agent that goes on are counted from its very beginning, as if it had never
    stopped; how much of that was done before is in the table ``resumed``.
    """
    from importlib.metadata import version

    settings = agent.get_parameters()
    seed = settings.pop("seed")
    steps, episodes = agent.num_timesteps, len(agent.episodes)  # zero unless it goes on
    before = {"agent": str(resume), "timesteps": steps, "episodes": episodes}
    configuration.write(
        plan.save / "settings.toml",  # type: ignore[operator]
        {
            "env": _identifier(agent, plan),
            "algo": _name(agent),
            "basis": _written(agent.basis),
            "episodes": None if plan.episodes is None else episodes + plan.episodes,
            "timesteps": None if plan.timesteps is None else steps + plan.timesteps,
            "seed": seed,
            "tensorboard": plan.tensorboard,
            "set": settings,
            "env_set": _arguments(agent) | plan.arguments,
            "resumed": None if resume is None else before,
            "versions": {
                "python": sys.version.split()[0],
                **{name: version(name) for name in ("rblspi", "gymnasium", "numpy", "numba")},
            },
        },
    )


def _identifier(agent: Agent, plan: Plan) -> str | None:
    spec = agent.env.spec
    return plan.env if spec is None else str(spec.id)


def _arguments(agent: Agent) -> dict[str, Any]:
    """What the environment was made with, apart from what is registered for its id."""
    import gymnasium as gym

    from rblspi.agents import storage

    description = storage.describe(agent.env)
    arguments: dict[str, Any] = description["arguments"]
    registered, limit = gym.registry.get(description["id"]), description["limit"]
    if registered is not None and registered.max_episode_steps != limit:
        arguments["max_episode_steps"] = -1 if limit is None else limit
    return arguments


def _name(agent: Agent) -> str:
    from rblspi.agents import ALGORITHMS

    return next(name for name, kind in ALGORITHMS.items() if kind is type(agent))


def _written(basis: Any) -> str | None:
    """A basis as one types it; None for one that has no name."""
    from rblspi.features import BASES

    if type(basis).__name__ not in BASES:
        return None
    arguments = ", ".join(f"{k}={v!r}" for k, v in asdict(basis).items() if v is not None)
    return f"{type(basis).__name__}({arguments})"


def _summarise(agent: Agent, seconds: float, folder: Path | None, interrupted: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    episodes = agent.episodes[-100:]
    if interrupted:
        console.print("Stopped.", markup=False)
    console.print(
        f"{agent.num_timesteps:,} steps in {len(agent.episodes):,} episodes, {seconds:.1f} s",
        markup=False,
    )
    if len(episodes):
        length, earned = episodes.mean(axis=0)
        console.print(
            f"last {len(episodes)} episodes: return {earned:.4g}, length {length:.4g}", markup=False
        )
    if folder is not None:
        console.print(f"saved in {folder}: next, rblspi show {folder}", markup=False)
    elif interrupted:
        console.print("not saved: next time add --save DIR", markup=False)
