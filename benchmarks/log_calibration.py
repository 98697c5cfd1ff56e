"""How often the intervals of policies from logs contain the true action values.

    python -m benchmarks.log_calibration FOLDER [SEEDS] [FIRST_SEED]

collects a log of random actions in every environment, for some seeds, fits `BLSPI` to it with
nothing chosen but the discount, and compares the intervals of its policy with simulated true
values: as the policy states them, and by its posterior alone. For the values of the log's own
policy, held-out episodes are compared with.

What was found is kept in FOLDER/results.json: run again, it makes what is missing only.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path

from benchmarks.calibration import Results, main
from rblspi.core.intervals import mean_interval
from rblspi.data.transitions import concatenated
from rblspi.environments.lookup import make
from rblspi.offline import BLSPI, ConvergenceWarning, calibrate_on_log
from rblspi.rollout.calibration import calibration_of, true_values
from rblspi.rollout.collect import collect

#: transitions and discount
LOGS = {
    "rblspi/ChainWalk-v0": (5_000, 0.9),
    "FrozenLake-v1": (20_000, 0.99),
    "rblspi/InvertedPendulum-v0": (9_000, 0.95),
    "rblspi/CartPole-v0": (20_000, 0.99),
}
KINDS = ("as stated", "by the posterior alone", "the log's own policy, by held-out episodes")
#: the first seed; smaller ones were used to choose
FIRST = 6000


def run(name: str, seed: int) -> dict[str, dict[str, float]]:
    """Coverage and width by the kind of interval."""
    rows, discount = LOGS[name]
    log = concatenated(list(collect(name, rows, seed=seed)))
    space = make(name).observation_space
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = BLSPI(discount=discount, observation_space=space).fit(log)
    policy = learner.policy(name)
    true = true_values(policy, name, seed=seed)
    found = (
        calibration_of(policy, true),
        calibration_of(replace(policy, draws=None), true),
        calibrate_on_log(log, discount=discount, observation_space=space),
    )
    return {
        kind: {"coverage": float(one.coverage(0.95)[0]), "width": one.sharpness}
        for kind, one in zip(KINDS, found, strict=True)
    }


def table(results: Results) -> str:
    """Coverage of 95% intervals, and their width in that which is needed."""
    lines = [f"| environment | {' | '.join(KINDS)} |", "|---" * (1 + len(KINDS)) + "|"]
    for name in LOGS:
        cells = []
        for kind in KINDS:
            keys = [k for k in results if k.startswith(f"{name}|") and k.endswith(f"|{kind}")]
            covered = mean_interval([results[key]["coverage"] for key in keys])
            width = mean_interval([results[key]["width"] for key in keys])
            cells.append(f"{covered.mean:.0%} of {len(keys)}, width {width.mean:.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[2:]]
    seeds, first = numbers + [20, FIRST][len(numbers) :]
    jobs = [(name, first + i) for i in range(seeds) for name in LOGS]
    print(table(main(Path(sys.argv[1]), jobs, run)))
