"""What RBLSPI reaches with its defaults, on Gymnasium's own environments.

    python -m benchmarks.defaults

Also how little a constant added to all rewards matters where it does not change the best policy.
Prints the two tables as Markdown.
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi import RBLSPI, evaluate

STEPS, SEEDS, EPISODES = 50_000, range(5), 30
CHAIN_STEPS, CONSTANTS = 4000, (0.0, 1.0, 100.0, 10_000.0, -10_000.0)


class Shifted(gym.RewardWrapper[Any, Any]):
    """All rewards plus a constant."""

    def __init__(self, env: gym.Env[Any, Any], constant: float) -> None:
        super().__init__(env)
        self.constant = constant

    def reward(self, reward: Any) -> float:
        """Add the constant."""
        return float(reward) + self.constant


def train(name: str) -> str:
    scores, seconds = [], []
    for seed in SEEDS:
        agent = RBLSPI(name, seed=seed)
        start = time.perf_counter()
        agent.learn(STEPS)
        seconds.append(time.perf_counter() - start)
        scores.append(evaluate(agent, gym.make(name), EPISODES, seed=10_000 + seed).returns.mean())
    mean, low, high = np.mean(scores), min(scores), max(scores)
    return f"| `{name}` | {mean:.0f} | {low:.0f} to {high:.0f} | {np.median(seconds):.1f} |"


def chain(constant: float) -> str:
    earned = []
    for seed in SEEDS:
        env = Shifted(gym.make("rblspi/ChainWalk-v0"), constant)
        agent = RBLSPI(env, discount=0.9, seed=seed).learn(CHAIN_STEPS)
        policy = agent.predict(np.arange(20), deterministic=True)[0]
        values = gym.make("rblspi/ChainWalk-v0").unwrapped.exact_action_values(policy, 0.9)
        earned.append(values[np.arange(20), policy].mean())
    return f"| {constant:+g} | {np.mean(earned):.3f} | {min(earned):.3f} |"


def main() -> None:
    print(f"| environment | mean greedy return | range over {len(SEEDS)} seeds | seconds |")
    print("|---|---|---|---|")
    for name in ("CartPole-v1", "MountainCar-v0", "Acrobot-v1"):
        train(name)  # compiled code is loaded, and the times are of learning only
        print(train(name), flush=True)
    best = np.repeat([0, 1], 10)
    values = gym.make("rblspi/ChainWalk-v0").unwrapped.exact_action_values(best, 0.9)
    print(f"\nThe best policy's mean value is {values[np.arange(20), best].mean():.2f}.")
    print("\n| added to every reward | mean value of the chain under its policy | worst seed |")
    print("|---|---|---|")
    for constant in CONSTANTS:
        print(chain(constant), flush=True)


if __name__ == "__main__":
    main()
