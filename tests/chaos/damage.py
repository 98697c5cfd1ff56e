"""Files with a flipped bit, with a block of zeros, or cut short: noticed, or harmless."""

import tomllib

from rblspi.features import basis_from_text, basis_to_text
from tests.chaos import checks
from tests.chaos.prepared import CAR, SEED, STEPS, evaluate, fit, reproduce

SECTOR = 512


def damaged_file(trial):
    """Damage a file, and let a command read it."""
    name = trial.rng.choice(list(READERS))
    READERS[name](trial)


def spoil(trial, file):
    """Damage a file at a random place."""
    data = bytearray(file.read_bytes())
    place = trial.rng.randrange(len(data))
    how = trial.rng.choices(("flip", "cut", "zeros"), (6, 2, 1))[0]
    if how == "flip":
        bit = trial.rng.randrange(8)
        data[place] ^= 1 << bit
        print(f"# bit {bit} of byte {place} of {file.name} flipped")
    elif how == "cut":
        del data[place:]
        print(f"# {file.name} cut to {place} bytes")
    else:
        data[place : place + SECTOR] = bytes(len(data[place : place + SECTOR]))
        print(f"# {SECTOR} zeros in {file.name} at byte {place}")
    file.write_bytes(data)


def _agent(trial):
    spoil(trial, trial.copy(trial.prepared.agent, "run") / "agent.npz")
    _require_numbers(trial, evaluate("run"), trial.prepared.agent, "agent.npz")


def _policy(trial):
    spoil(trial, trial.copy(trial.prepared.policy, "policy") / "policy.npz")
    _require_numbers(trial, evaluate("policy"), trial.prepared.policy, "policy.npz")


def _require_numbers(trial, arguments, saved, name):
    finished = trial.run(*arguments)
    if finished.code:
        finished.require_sentence(name)
    else:
        checks.require_same_numbers(finished.out, saved)


def _log(trial):
    spoil(trial, trial.copy(trial.prepared.log, "log.parquet"))
    finished = trial.run(*fit("log.parquet", "policy"))
    if finished.code:
        finished.require_sentence("log.parquet")
    else:
        checks.require_same_outputs(trial.folder, trial.prepared, "policy/policy.npz")


def _results(trial):
    spoil(trial, trial.copy(trial.prepared.results / "results.sqlite", "out/results.sqlite"))
    more = ("--report-only",) if trial.rng.random() < 0.7 else ()
    finished = trial.run(*reproduce(trial.prepared.experiment, "out"), *more)
    if finished.code:
        finished.require_sentence("results.sqlite")
    else:
        checks.require_same_outputs(trial.folder, trial.prepared, "out/table.jsonl")


def _settings(trial):
    """What the file says is what is done: its text is anybody's to edit, so it has no digest."""
    file = trial.copy(trial.prepared.agent / "settings.toml", "settings.toml")
    spoil(trial, file)
    arguments = ("train", "--config", "settings.toml", "--timesteps", 200, "--save", "run")
    finished = trial.run(*arguments, "--quiet")
    if finished.code:
        finished.require_sentence()
        return
    said = tomllib.loads(file.read_text())
    used = tomllib.loads((trial.folder / "run/settings.toml").read_text())
    if "basis" in said:  # whose name may be in capital or small letters
        said["basis"] = basis_to_text(basis_from_text(said["basis"]))
    for name in set(said) - {"timesteps", "versions"}:
        agrees = used[name] | said[name] if isinstance(said[name], dict) else said[name]
        assert used[name] == agrees, f"{name} = {said[name]!r} became {used[name]!r}"


def _monitor(trial):
    """Nothing is computed from the log: it stays as it is, and whole lines are added to it."""
    folder = trial.copy(trial.prepared.agent, "run")
    log = folder / "monitor.csv"
    spoil(trial, log)
    before, agent = log.read_bytes(), (folder / "agent.npz").read_bytes()
    arguments = ("train", "--resume", "run", "--timesteps", 1000, "--save", "run", "--quiet")
    finished = trial.run(*arguments)
    after = log.read_bytes()
    assert after.startswith(before), "monitor.csv has lost rows"
    if finished.code:
        finished.require_sentence("monitor.csv")
        assert (folder / "agent.npz").read_bytes() == agent, "agent.npz has changed"
        return
    checks.require_same(checks.saved_agent(folder), checks.undisturbed(CAR, SEED, STEPS + 1000))
    added = after[len(before) :].decode()
    whole = before.endswith(b"\n") or added.startswith("\n")
    assert whole, "the first new row of monitor.csv is glued to half a row"
    for line in added.split():
        assert len([float(word) for word in line.split(",")]) == 3, f"a row is {line!r}"


READERS = {
    "agent.npz": _agent,
    "policy.npz": _policy,
    "log.parquet": _log,
    "results.sqlite": _results,
    "settings.toml": _settings,
    "monitor.csv": _monitor,
}
