"""The paper's domains and problems of exploration, compiled; ids start with ``rblspi/``."""

from __future__ import annotations

import gymnasium as gym

_DOMAINS = "rblspi.environments"

#: id, where its class lives, step limit, arguments
_IDS: tuple[tuple[str, str, int | None, dict[str, object]], ...] = (
    ("ChainWalk-v0", "chain_walk:ChainWalk", None, {}),
    ("MountainCar-v0", "mountain_car:MountainCar", 500, {}),
    (
        "SparseMountainCar-v0",
        "mountain_car:MountainCar",
        500,
        {"step_reward": 0.0, "goal_reward": 1.0},
    ),
    ("InvertedPendulum-v0", "inverted_pendulum:InvertedPendulum", 3000, {}),
    ("CartPole-v0", "cart_pole:CartPole", 500, {}),
    ("PuddleWorld-v0", "puddle_world:PuddleWorld", 500, {}),
    ("DeepSea-v0", "deep_sea:DeepSea", None, {}),
    ("DeepSeaStochastic-v0", "deep_sea:DeepSea", None, {"stochastic": True}),
    ("RiverSwim-v0", "river_swim:RiverSwim", None, {}),
    ("NChain-v0", "n_chain:NChain", None, {}),
    ("CartPoleSwingUp-v0", "cart_pole_swing_up:CartPoleSwingUp", 1000, {}),
    ("CombinationLock-v0", "combination_lock:CombinationLock", None, {}),
)


def register() -> None:
    """Register the domains with Gymnasium; nothing is imported before one is made."""
    for name, entry_point, limit, arguments in _IDS:
        gym.register(
            f"rblspi/{name}",
            entry_point=f"{_DOMAINS}.{entry_point}",
            max_episode_steps=limit,
            kwargs=arguments,
        )
