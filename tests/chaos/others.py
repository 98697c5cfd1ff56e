"""A clock that jumps, and two processes that write to the same place at the same time."""

import tomllib

from tests.chaos import checks
from tests.chaos.prepared import CAR, LAKE, ROWS, RUNS, collect, evaluate, fit, reproduce, train

#: the clock jumps back and forth, also to 1970, where a board without a battery begins
JUMPING = """
import random, time
rng, true, offset = random.Random({seed}), time.time, 0.0
def jumping():
    global offset
    if rng.random() < {often}:
        offset = rng.choice((0.0, -3600.0, 3600.0, -1e8, 1e9, -true()))
    return true() + offset
time.time = jumping
import rblspi.cli.autosave as a
a.SAVE_EVERY = 0.05
"""


def clock_jumps(trial):
    """Run a command while the clock jumps."""
    often = trial.rng.choice((0.01, 0.3, 1.0))
    prelude = JUMPING.format(seed=trial.rng.randrange(1000), often=often)
    name = trial.rng.choices(("train", "collect", "fit", "evaluate", "reproduce"), (8, 3, 3, 2, 2))
    env, steps = trial.rng.choice((CAR, LAKE)), trial.rng.randrange(500, 5000)
    prepared, folder = trial.prepared, trial.folder
    arguments = {
        "train": train(env, 5, steps, "run"),
        "collect": collect(ROWS, "log.parquet"),
        "fit": fit(prepared.log, "policy"),
        "evaluate": evaluate(prepared.agent),
        "reproduce": reproduce(prepared.experiment, "out"),
    }[name[0]]
    finished = trial.run(*arguments, prelude=prelude)
    finished.require(0)
    if name == ["train"]:
        agent = _require_whole_run(folder / "run")
        undisturbed = checks.undisturbed(env, 5, steps)
        checks.require_same(agent, checks.as_loaded(undisturbed, folder))
    elif name == ["evaluate"]:
        checks.require_same_numbers(finished.out, prepared.agent)
    else:
        checks.require_same_outputs(folder, prepared)
    trial.require_tidy()


def two_processes(trial):
    """Run a command twice at the same time; one of them may be refused, with a sentence."""
    name = trial.rng.choices(("train", "collect", "fit", "reproduce"), (5, 2, 2, 2))[0]
    options = {}
    if name == "train":
        steps = [trial.rng.randrange(9000, 40_000) for _ in range(2)]
        commands = [train(CAR, 3 + i, steps[i], "run") for i in range(2)]
        options = {"prelude": "import rblspi.cli.autosave as a; a.SAVE_EVERY = 0.02"}
    else:
        command = {
            "collect": collect(ROWS, "log.parquet"),
            "fit": fit(trial.prepared.log, "policy"),
            "reproduce": reproduce(trial.prepared.experiment, "out"),
        }[name]
        commands = [command, command]
    running = []
    for arguments in commands:
        running.append(trial.start(*arguments, **options))
        trial.pause(0.5)
    finished = [each.wait() for each in running]
    for each in finished:
        if each.code:
            each.require_sentence()
    assert any(each.code == 0 for each in finished), "both have failed"
    if name == "train":
        agent = _require_whole_run(trial.folder / "run")
        checks.require_same(agent, checks.undisturbed(CAR, agent.seed, agent.num_timesteps))
        settings = tomllib.loads((trial.folder / "run/settings.toml").read_text())
        plan = (settings["seed"], settings["timesteps"])
        assert plan == (agent.seed, agent.num_timesteps), f"settings.toml has {plan}"
    else:
        checks.require_same_outputs(trial.folder, trial.prepared)
    if name == "reproduce":
        runs = checks.stored_runs(trial.folder / "out")
        assert len(runs) == 2 * RUNS, "not all runs are there"
    trial.require_tidy()


def _require_whole_run(folder):
    """The agent in a folder, whose log has exactly its episodes."""
    agent, rows = checks.saved_agent(folder), checks.monitor_rows(folder / "monitor.csv")
    assert len(rows) == len(agent.episodes), f"{len(rows)} rows in monitor.csv"
    checks.require_rows(rows, agent.episodes)
    return agent
