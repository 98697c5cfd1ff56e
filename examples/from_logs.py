"""From logged data to a policy, to the value of a policy, and to where the data say nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from rblspi import BLSPI, OneHot, RBFGrid
from rblspi.agents import FittedPolicy
from rblspi.agents.evaluation import evaluate
from rblspi.datasets import ParquetData, ParquetWriter, collect
from rblspi.environments.chain_walk import ChainWalk
from rblspi.estimators import coverage, policy_value

PENDULUM = "rblspi/InvertedPendulum-v0"
BASIS = RBFGrid(3, low=(-np.pi / 4, -1.0), high=(np.pi / 4, 1.0), width=1.5)
OPTIMAL = np.repeat([0, 1], 10)  # left in the left half of the chain, right in the right one


def logs_of(path: Path, env: str, **amount: int) -> ParquetData:
    with ParquetWriter(path, {"environment": env}) as writer:
        for chunk in collect(env, seed=0, **amount):
            writer.write(*chunk)
    return ParquetData(path)


def find_a_policy(logs: ParquetData) -> None:
    print(f"{logs.size:,} transitions of 1,000 random episodes of the pendulum")
    settings = {"discount": 0.95, "prior_precision": 1e-6, "noise_precision": 1.0}
    blspi = BLSPI(BASIS, 3, **settings).fit(logs)
    agent = FittedPolicy.from_fit(PENDULUM, BASIS, blspi.statistics_, blspi.weights_, **settings)
    steps = evaluate(agent, episodes=3).mean_length
    print(f"after {blspi.n_iter_} iterations the policy balances for {steps} steps of 3000")


def value_a_policy(logs: ParquetData) -> None:
    exact = ChainWalk().exact_action_values(OPTIMAL, 0.9).max(axis=1).mean()
    estimated = policy_value(
        logs,
        lambda states: OPTIMAL[states],
        OneHot(),
        2,
        discount=0.9,
        first_observations=range(20),
    )
    print(f"the best policy of the chain, from {logs.size:,} random steps: {estimated}")
    print(f"its true value: {exact:.4g}")


def warn_of_what_is_not_there(logs: ParquetData) -> None:
    half = [chunk._make(c[chunk.observations < 10] for c in chunk) for chunk in logs]
    space = ChainWalk().observation_space
    blspi = BLSPI(OneHot(), 2, discount=0.9, pessimism=1.0, observation_space=space).fit(half)
    print(f"with logs of the left half only, {coverage(blspi, np.arange(20))}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        find_a_policy(logs_of(Path(folder) / "pendulum.parquet", PENDULUM, episodes=1000))
        chain = logs_of(Path(folder) / "chain.parquet", "rblspi/ChainWalk-v0", transitions=5000)
        value_a_policy(chain)
        warn_of_what_is_not_there(chain)


if __name__ == "__main__":
    main()
