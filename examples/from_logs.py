"""From logged transitions to a policy, to the value of a policy, and to gaps in the data."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from rblspi import BLSPI, OneHot, RBFGrid, evaluate
from rblspi.data import Log, ParquetWriter, read_log
from rblspi.environments.chain_walk import ChainWalk
from rblspi.offline import coverage, policy_value
from rblspi.rollout import collect

PENDULUM = "rblspi/InvertedPendulum-v0"
BASIS = RBFGrid(3, low=(-np.pi / 4, -1.0), high=(np.pi / 4, 1.0), width=1.5)
OPTIMAL = np.repeat([0, 1], 10)  # left in the left half of the chain, right in the right half


def write_logs(path: Path, env: str, **amount: int) -> Log:
    """Log random actions in a Parquet file, chunk by chunk."""
    with ParquetWriter(path, {"environment": env}) as writer:
        for chunk in collect(env, seed=0, **amount):
            writer.write(chunk)
    return read_log(path)


def find_policy(logs: Log) -> None:
    """Fit a policy to the logs, then let it act in the environment."""
    print(f"{logs.size:,} transitions of 1,000 random episodes of the pendulum")
    blspi = BLSPI(BASIS, 3, discount=0.95, prior_precision=1e-6, noise_precision=1.0).fit(logs)
    steps = evaluate(blspi.policy(PENDULUM), episodes=3).mean_length
    print(f"after {blspi.n_iter_} iterations the policy balances for {steps} steps of 3000")


def value_policy(logs: Log) -> None:
    """Estimate what the best policy of the chain is worth, and compare with the exact value."""
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


def find_gaps(logs: Log) -> None:
    """Keep the logs of the left half only; the posterior shows that the right half is unknown."""
    half = [chunk.select(chunk.observations < 10) for chunk in logs]
    space = ChainWalk().observation_space
    blspi = BLSPI(OneHot(), 2, discount=0.9, pessimism=1.0, observation_space=space).fit(half)
    print(f"with logs of the left half only, {coverage(blspi, np.arange(20))}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        find_policy(write_logs(Path(folder) / "pendulum.parquet", PENDULUM, episodes=1000))
        chain = write_logs(Path(folder) / "chain.parquet", "rblspi/ChainWalk-v0", transitions=5000)
        value_policy(chain)
        find_gaps(chain)


if __name__ == "__main__":
    main()
