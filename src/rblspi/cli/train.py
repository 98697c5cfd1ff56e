"""``rblspi train``: learn in an environment, with progress on the screen, and save the agent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rblspi.cli import options
from rblspi.cli.autosave import SAVE_EVERY, autosaving
from rblspi.cli.commands import Command
from rblspi.cli.plan import DEFAULT_TIMESTEPS, Plan, identifier, write_settings
from rblspi.cli.saved import AGENT, Selection, environment
from rblspi.core.files import locked
from rblspi.core.progress import duration, say

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

#: seconds of computing above which a run announces its expected time
LONG = 60.0


def train(
    plan: Plan,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Settings; options on the command line override them."
        ),
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
    """Train an agent. Ctrl-C stops the training and saves the agent.

    Then look at it: rblspi explore DIR, rblspi watch DIR, rblspi evaluate DIR. The progress bar
    shows the mean return and length of the latest 100 episodes, as the agent explores, and how wide
    its exploration still is: relative_std, the spread of sampled weights relative to their mean,
    epsilon, the probability of a random action, or for tables the share of tried state-action
    pairs.
    """
    plan = plan.completed(config)
    with ExitStack() as stack:
        if plan.goes_on:  # so that no other process replaces the agent that is read
            _take_folder(plan, stack)
        agent = _new_agent(plan) if plan.saved is None else _saved_agent(plan, plan.saved)
        if not plan.goes_on:  # the folder may have to be made, after all checks
            _take_folder(plan, stack)
        _learn(agent, plan, save_every, quiet, stack)


def _take_folder(plan: Plan, stack: ExitStack) -> None:
    """Keep other processes from the folder, and replace an agent only with --overwrite."""
    if plan.save is None:
        return
    stack.enter_context(locked(plan.save))
    if (plan.save / AGENT).exists() and not plan.goes_on and not plan.overwrite:
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
    file = None if plan.save is None else plan.save / AGENT
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
    env = environment(plan.environment, plan.env_settings, plan.wrap)
    settings = dict(plan.settings or ())
    given: dict[str, Any] = {"algorithm": plan.algorithm, "basis": basis, "seed": plan.seed}
    for name in settings.keys() & given:
        raise ValueError(f"--set {name}: this has an option of its own, see rblspi train --help")
    return agent(env, **given, **settings)


def _saved_agent(plan: Plan, saved: Selection) -> Agent:
    typed = {"--algo": plan.algorithm, "--basis": plan.basis, "--seed": plan.seed}
    wrong = [f"{name} {value}" for name, value in typed.items() if value is not None]
    wrong += [f"--set {name}={value}" for name, value in plan.settings or ()]
    if wrong:
        raise ValueError(f"--resume keeps the agent's own settings: leave out {', '.join(wrong)}")
    actor: Any = saved.load().actor
    if not hasattr(actor, "learn"):
        raise ValueError(f"{saved.path} holds a policy, which does not learn online: fit again")
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
    if not interrupted:
        _compare_with_random(agent)
    if folder is not None:
        name = identifier(agent, plan) or ""
        again = f" --env {name}" if ":" in name else ""
        again += "".join(f" --wrap {wrapper}" for wrapper in plan.wrap or ())
        print(f"saved in {folder}: next, rblspi show {folder}{again}")
    else:
        print("not saved: next time add --save DIR")


def _compare_with_random(agent: Agent) -> None:
    """Say what the greedy policy gets, and random actions, in half the steps of learning."""
    from rblspi.core.intervals import mean_interval
    from rblspi.online.findings import EPISODES, Trial

    if not len(agent.episodes):
        return
    length = agent.episodes[-100:, 0].mean()
    count = min(EPISODES, int(0.25 * agent.num_timesteps / length))
    if count < 2:  # no interval
        return
    greedy, chance = (
        mean_interval(Trial.of(agent, random, count).returns) for random in (False, True)
    )
    print(f"{count} episodes of the greedy policy: return {greedy}; of random actions: {chance}")


COMMAND = Command(train, "CartPole-v1 --save runs/pole")
