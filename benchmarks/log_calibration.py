"""How often the intervals of policies from logs contain the true action values.

    python -m benchmarks.log_calibration FOLDER [SEEDS] [FIRST_SEED]

collects a log of random actions in every environment, for some seeds, fits `BLSPI` to it with
nothing chosen but the discount, and compares the intervals of its policy with simulated true
values: as the policy states them, and by its posterior alone. For the values of the log's own
policy, held-out episodes are compared with.
What was found is kept in FOLDER/results.json: run again, it makes what is missing only.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from benchmarks.calibration import Results, arguments, main, numbers_of, table
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
STATED = {
    "": "as the policy states them",
    " posterior": "by the posterior alone",
    " held out": "the log's own policy, by held-out episodes",
}


def run(folder: Path, name: str, seed: int) -> dict[str, float]:
    """Coverage and width, with the kind of interval in the name of the number."""
    rows, discount = LOGS[name]
    log = concatenated(list(collect(name, rows, seed=seed)))
    space = make(name).observation_space
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = BLSPI(discount=discount, observation_space=space).fit(log)
    policy = learner.policy(name)
    true = true_values(policy, name, seed=seed)
    alone = replace(policy, draws=None)
    kinds = {
        "": calibration_of(policy, true),
        " posterior": calibration_of(alone, true),
        " held out": calibrate_on_log(log, discount=discount, observation_space=space),
    }
    found = {kind: numbers_of(result) for kind, result in kinds.items()}
    return {
        f"{number}{kind}": x for kind, numbers in found.items() for number, x in numbers.items()
    }


def of_kind(results: Results, kind: str) -> Results:
    """The numbers of one kind of interval."""
    return {
        job: {number: numbers[f"{number}{kind}"] for number in ("coverage", "sharpness")}
        for job, numbers in results.items()
    }


if __name__ == "__main__":
    results = main(*arguments(), list(LOGS), run)
    for kind, words in STATED.items():
        print(f"\n{words}:\n\n{table(of_kind(results, kind), LOGS)}")
