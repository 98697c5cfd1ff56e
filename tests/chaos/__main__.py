"""Disturb the command line in many ways, and see whether it keeps its promises.

The choice of trials depends on the seed alone; how a process and a signal meet does not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos import clock, damage, disks, processes, signals
from tests.chaos.prepared import prepare
from tests.chaos.trial import PREFIX, Outcome, Trial, carry_out

#: what is tried, and how many of 500 trials are of this kind
KINDS: dict[str, tuple[Callable[[Trial], None], int]] = {
    "signals-train": (signals.train_compiled, 95),
    "signals-train-python": (signals.train_python, 50),
    "signals-fit": (signals.fit_policy, 35),
    "signals-collect": (signals.collect_rows, 35),
    "signals-reproduce": (signals.reproduce_again, 25),
    "full-disk": (disks.full, 50),
    "read-only": (disks.read_only, 30),
    "damaged-files": (damage.damaged_file, 110),
    "two-processes": (processes.two, 30),
    "clock-jumps": (clock.jumps, 40),
}
WHOLE = sum(count for _, count in KINDS.values())
VERDICTS = ("kept", "lost", "wrong", "hung", "traceback", "skipped")


def main() -> int:
    """Make the trials, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=WHOLE, help="about so many, of all kinds")
    parser.add_argument("--only", metavar="NAME", help="one trial, or all of one kind")
    given = parser.parse_args()
    names = [n for n in trials(given.trials) if given.only in (None, n, n.rpartition("-")[0])]
    if not names:
        parser.error(f"--only {given.only} is no trial: kinds are {', '.join(KINDS)}")
    print(f"{len(names)} trials with --seed {given.seed}, preparing ...", flush=True)
    start = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix=PREFIX) as folder,
        ThreadPoolExecutor(2) as pool,
    ):
        prepared = prepare(Path(folder))

        def make(name: str) -> Outcome:
            outcome = carry_out(name, given.seed, prepared, KINDS[name.rpartition("-")[0]][0])
            _tell(outcome, given.seed)
            return outcome

        outcomes = list(pool.map(make, names))
    _print_table(outcomes, time.perf_counter() - start)
    return int(any(outcome.verdict not in ("kept", "skipped") for outcome in outcomes))


def trials(count: int) -> list[str]:
    """Names of the trials, the kinds in turn and in proportion."""
    places = []
    for kind, (_, share) in KINDS.items():
        number = max(round(count * share / WHOLE), 1)
        places += [((i + 0.5) / number, f"{kind}-{i}") for i in range(number)]
    return [name for _, name in sorted(places)]


def _tell(outcome: Outcome, seed: int) -> None:
    if outcome.verdict == "kept":
        return
    print(f"{outcome.trial}: {outcome.verdict}: {outcome.reason}", flush=True)
    if outcome.verdict != "skipped":
        for line in outcome.lines:
            print(f"    {line}", flush=True)
        again = f"python -m tests.chaos --seed {seed} --only {outcome.trial}"
        print(f"    again: {again}", flush=True)


def _print_table(outcomes: Sequence[Outcome], seconds: float) -> None:
    heading = "".join(f"{name:>11}" for name in ("trials", *VERDICTS, "seconds"))
    print(f"\n{'kind':22}{heading}")
    for kind in KINDS:
        found = [outcome for outcome in outcomes if outcome.trial.rpartition("-")[0] == kind]
        if found:
            _print_row(kind, found, sum(outcome.seconds for outcome in found))
    _print_row("all", outcomes, seconds)
    count = Counter(outcome.verdict for outcome in outcomes)
    print(
        f"\n{len(outcomes)} trials, {count['lost']} lost, {count['wrong']} wrong, "
        f"{count['hung']} hung, {count['traceback']} tracebacks, {count['skipped']} skipped"
    )


def _print_row(kind: str, outcomes: Sequence[Outcome], seconds: float) -> None:
    count = Counter(outcome.verdict for outcome in outcomes)
    cells = [len(outcomes), *(count[verdict] for verdict in VERDICTS), round(seconds)]
    print(f"{kind:22}" + "".join(f"{cell:>11}" for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
