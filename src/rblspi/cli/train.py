"""``rblspi train``: learn in an environment, live on the screen, and keep what was learnt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli import completion, options, parsing
from rblspi.cli.autosave import SAVE_EVERY, autosaving
from rblspi.cli.plan import DEFAULT_TIMESTEPS, Plan, identifier, make_plan, write_settings
from rblspi.core.files import locked
from rblspi.core.progress import duration, say

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

#: seconds of computing above which a run says beforehand what it will take
LONG = 60.0


def train(
    environment: options.OptionalEnvironmentArgument = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algo",
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
    settings: options.Settings = None,
    env: options.EnvironmentOption = None,
    env_settings: options.EnvironmentSettings = None,
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
            show_default=f"{SAVE_EVERY:g}",
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
    plan = make_plan(locals())  # the parameters have the names of the fields
    with ExitStack() as stack:
        if plan.goes_on:  # then nobody saves a newer agent than the one that is read
            _take_folder(plan, stack)
        agent = _new_agent(plan) if resume is None else _saved_agent(plan, resume)
        if not plan.goes_on:  # then the folder may have to be made, which is done after all checks
            _take_folder(plan, stack)
        _learn(agent, plan, save_every, quiet, stack)


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
        write_settings(agent, plan, plan.save)
    _say_cost(agent, plan.timesteps)
    file = None if plan.save is None else plan.save / parsing.AGENT
    callbacks = [stack.enter_context(log) for log in _logs(agent, plan)]
    with autosaving(agent, file, save_every) as interrupted:
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


def _new_agent(plan: Plan) -> Agent:
    from rblspi.features import basis_from_text
    from rblspi.online.factory import agent

    if plan.environment is None:
        raise ValueError("name an environment: rblspi train ENV_ID, one of rblspi list")
    basis = None if plan.basis is None else basis_from_text(plan.basis)
    env = parsing.environment(plan.environment, plan.env_settings, plan.wrap)
    return agent(env, algorithm=plan.algorithm, basis=basis, seed=plan.seed, **plan.settings)


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
    from rblspi.online import callbacks

    if plan.save is None:
        return
    before = len(agent.episodes) if plan.goes_on else None
    name = identifier(agent, plan)
    yield callbacks.MonitorFile(plan.save / "monitor.csv", name, append_to=before)
    if plan.tensorboard:
        yield callbacks.TensorBoard(plan.save / "tensorboard")
    if plan.checkpoint_every:
        folder, keep = plan.save / "checkpoints", plan.checkpoints or 3
        yield callbacks.CheckpointCallback(plan.checkpoint_every, folder, keep=keep)
    if plan.eval_every:
        yield callbacks.EvalCallback(
            n_eval_episodes=plan.eval_episodes or 10,
            eval_freq=plan.eval_every,
            best_model_save_path=plan.save,
            resume=plan.goes_on,
        )


def _summarise(agent: Agent, seconds: float, plan: Plan, interrupted: bool) -> None:
    folder, episodes = plan.save, agent.episodes[-100:]
    if interrupted:
        print("Stopped.")
    print(f"{agent.num_timesteps:,} steps in {len(agent.episodes):,} episodes, {seconds:.1f} s")
    if len(episodes):
        length, episode_return = episodes.mean(axis=0)
        print(f"last {len(episodes)} episodes: return {episode_return:.4g}, length {length:.4g}")
    if folder is not None:
        again = parsing.again(identifier(agent, plan), plan.wrap)
        print(f"saved in {folder}: next, rblspi show {folder}{again}")
    else:
        print("not saved: next time add --save DIR")
