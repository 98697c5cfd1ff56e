"""How little the units and the offset of the rewards matter to the agents of `rblspi train`.

    python -m benchmarks.defaults

All rewards are multiplied by a factor, or have a constant added to them where that leaves the best
policy as it is, because no episode ends. Prints the two tables as Markdown.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi import OPSRL, FittedRmax, evaluate

CHAIN, CAR = "rblspi/ChainWalk-v0", "rblspi/MountainCar-v0"
CHAIN_STEPS, CAR_STEPS, SEEDS, EPISODES = 4000, 20_000, range(5), 20
FACTORS = (1.0, 1024.0, 1000.0, 0.001)
CONSTANTS = (1.0, 100.0, 10_000.0, -10_000.0)


class Changed(gym.RewardWrapper[Any, Any]):
    """All rewards times a factor, plus a constant."""

    def __init__(self, name: str, factor: float = 1.0, constant: float = 0.0) -> None:
        super().__init__(gym.make(name))
        self.factor, self.constant = factor, constant

    def reward(self, reward: Any) -> float:
        """Multiply, and add the constant."""
        return self.factor * float(reward) + self.constant


def chain_value(policy: Any) -> float:
    """The mean over states of a policy's exact value, with the rewards as they are."""
    values = gym.make(CHAIN).unwrapped.exact_action_values(policy, 0.9)
    return float(values[np.arange(20), policy].mean())


def chain(label: str, factor: float = 1.0, constant: float = 0.0) -> str:
    """A row of the first table."""
    found = []
    for seed in SEEDS:
        agent = OPSRL(Changed(CHAIN, factor, constant), discount=0.9, seed=seed).learn(CHAIN_STEPS)
        found.append(chain_value(agent.predict(np.arange(20), deterministic=True)[0]))
    return f"| {label} | {np.mean(found):.3f} | {min(found):.3f} |"


def car(factor: float) -> str:
    """A row of the second table."""
    found = []
    for seed in SEEDS:
        agent = FittedRmax(Changed(CAR, factor), seed=seed).learn(CAR_STEPS)
        policy = agent.policy()
        found.append(evaluate(policy, gym.make(CAR), EPISODES, seed=10_000 + seed).lengths.mean())
    return f"| times {factor:g} | {np.mean(found):.2f} | {max(found):.2f} |"


def main() -> None:
    """Print the tables."""
    print(f"The best policy's mean value is {chain_value(np.repeat([0, 1], 10)):.3f}.\n")
    print("| rewards of the chain walk | mean value under the learnt policy | worst seed |")
    print("|---|---|---|")
    for factor in FACTORS:
        print(chain(f"times {factor:g}", factor=factor), flush=True)
    for constant in CONSTANTS:
        print(chain(f"{constant:+g}", constant=constant), flush=True)
    print("\n| rewards of the mountain car | mean steps to the goal, greedy | worst seed |")
    print("|---|---|---|")
    for factor in FACTORS:
        print(car(factor), flush=True)


if __name__ == "__main__":
    main()
