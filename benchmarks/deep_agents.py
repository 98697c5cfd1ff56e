"""Our defaults beside DQN, PPO, SAC and TD3 of Stable-Baselines3, at the settings of its zoo.

    python -m benchmarks.deep_agents FILE [SEEDS] [NAME ...]
    python -m benchmarks.deep_agents FILE --markdown IMAGE.png

It needs Stable-Baselines3 (`pip install ".[benchmarks]"`), and LunarLander needs Box2D. All have
the same number of steps, for which the settings of PPO, mostly for a million, were not made, nor
those of SAC and TD3, for 20,000 to 300,000.
At every tenth of the way the greedy policy is run for ten episodes, and for twenty at the end.
Their starts are the same for the first run of every agent, for the second, and so on.
NAME is an environment or an agent. Every finished run is a line of FILE and is not made again.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import rblspi
from benchmarks.gymnasium_defaults import lines
from rblspi.core.intervals import mean_interval

#: the first seed; none of ours from here on chose anything
FIRST = {"ours": 5000, "DQN": 3000, "PPO": 3000, "SAC": 3000, "TD3": 3000}
STEPS = {
    "CartPole-v1": 20_000,
    "MountainCar-v0": 30_000,
    "Acrobot-v1": 50_000,
    "LunarLander-v3": 100_000,
    "Pendulum-v1": 5_000,
    "MountainCarContinuous-v0": 5_000,
}
CHECKS = 10

_MIXED = {
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
}
DQN_SETTINGS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
    },
    "MountainCar-v0": {
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
    },
    "Acrobot-v1": _MIXED,
    "LunarLander-v3": _MIXED,
}
DQN_COMMON: dict[str, Any] = {"policy_kwargs": {"net_arch": [256, 256]}, "device": "cpu"}
#: of PPO; "envs" and "normalize" are about the environments
PPO_SETTINGS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "envs": 8,
        "n_steps": 32,
        "batch_size": 256,
        "gae_lambda": 0.8,
        "gamma": 0.98,
        "n_epochs": 20,
        "learning_rate": lambda left: 1e-3 * left,
        "clip_range": lambda left: 0.2 * left,
    },
    "MountainCar-v0": {
        "envs": 16,
        "normalize": True,
        "n_steps": 16,
        "gae_lambda": 0.98,
        "n_epochs": 4,
    },
    "Acrobot-v1": {
        "envs": 16,
        "normalize": True,
        "n_steps": 256,
        "gae_lambda": 0.94,
        "n_epochs": 4,
    },
    "LunarLander-v3": {
        "envs": 16,
        "n_steps": 1024,
        "batch_size": 64,
        "gae_lambda": 0.98,
        "gamma": 0.999,
        "n_epochs": 4,
        "ent_coef": 0.01,
    },
}

SAC_SETTINGS: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {"learning_rate": 1e-3},
    "MountainCarContinuous-v0": {
        "learning_rate": 3e-4,
        "buffer_size": 50_000,
        "batch_size": 512,
        "ent_coef": 0.1,
        "train_freq": 32,
        "gradient_steps": 32,
        "gamma": 0.9999,
        "tau": 0.01,
        "learning_starts": 0,
        "use_sde": True,
        "policy_kwargs": {"log_std_init": -3.67, "net_arch": [64, 64]},
    },
}
#: "noise" is the standard deviation of normal noise, "correlated" that of Ornstein and Uhlenbeck
TD3_SETTINGS: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {
        "gamma": 0.98,
        "buffer_size": 200_000,
        "learning_starts": 10_000,
        "noise": 0.1,
        "learning_rate": 1e-3,
        "policy_kwargs": {"net_arch": [400, 300]},
    },
    "MountainCarContinuous-v0": {
        "correlated": 0.5,
        "batch_size": 256,
        "learning_rate": 1e-3,
        "policy_kwargs": {"net_arch": [400, 300]},
    },
}

#: a curve: steps and mean greedy returns
Curve = list[tuple[int, float]]


def greedy_return(env_id: str, act: Callable[[Any], Any], episodes: int, seed: int) -> float:
    """The mean undiscounted return."""
    env, total = gym.make(env_id), 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        done = False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total += float(reward)
            done = terminated or truncated
    env.close()
    return total / episodes


def checked(env_id: str, seed: int, step: int, act: Callable[[Any], Any]) -> tuple[int, float]:
    """A point of the curve."""
    episodes = 20 if step == STEPS[env_id] else 10
    return step, greedy_return(env_id, act, episodes, 10_000 + seed % 1000)


def ours(env_id: str, seed: int) -> Curve:
    """What `rblspi train` uses."""
    env = gym.make(env_id)
    agent = rblspi.agent(env, seed=seed)
    curve = []
    for step in range(STEPS[env_id] // CHECKS, STEPS[env_id] + 1, STEPS[env_id] // CHECKS):
        agent.learn(STEPS[env_id] // CHECKS, reset_num_timesteps=False)
        policy = agent.policy()
        curve.append(checked(env_id, seed, step, lambda o, p=policy: p.predict(o)[0]))
    return curve


def _watched(model: Any, env_id: str, seed: int, seen: Callable[[Any], Any]) -> Curve:
    from stable_baselines3.common.callbacks import BaseCallback

    curve: Curve = []

    class Check(BaseCallback):
        def _on_step(self) -> bool:
            step = (len(curve) + 1) * STEPS[env_id] // CHECKS
            if self.num_timesteps >= step and len(curve) < CHECKS - 1:
                curve.append(checked(env_id, seed, step, act))
            return True

    def act(observation: Any) -> Any:
        action = model.predict(seen(observation), deterministic=True)[0]
        return action if action.ndim else int(action)

    model.learn(STEPS[env_id], callback=Check())
    return [*curve, checked(env_id, seed, STEPS[env_id], act)]


def dqn(env_id: str, seed: int) -> Curve:
    """Deep Q-learning."""
    from stable_baselines3 import DQN

    model = DQN("MlpPolicy", gym.make(env_id), **DQN_SETTINGS[env_id], **DQN_COMMON, seed=seed)
    return _watched(model, env_id, seed, lambda observation: observation)


def ppo(env_id: str, seed: int) -> Curve:
    """Proximal policy optimisation."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    settings = dict(PPO_SETTINGS[env_id])
    env: Any = make_vec_env(env_id, settings.pop("envs"), seed=seed)
    seen: Callable[[Any], Any] = lambda observation: observation  # noqa: E731
    if settings.pop("normalize", False):
        env = VecNormalize(env, gamma=settings.get("gamma", 0.99))
        seen = env.normalize_obs
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", **settings)
    return _watched(model, env_id, seed, seen)


def sac(env_id: str, seed: int) -> Curve:
    """Soft actor-critic."""
    from stable_baselines3 import SAC

    model = SAC("MlpPolicy", gym.make(env_id), **SAC_SETTINGS[env_id], seed=seed, device="cpu")
    return _watched(model, env_id, seed, lambda observation: observation)


def td3(env_id: str, seed: int) -> Curve:
    """Twin delayed deep deterministic policy gradient."""
    from stable_baselines3 import TD3
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    settings, none = dict(TD3_SETTINGS[env_id]), np.zeros(1)
    settings["action_noise"] = (
        NormalActionNoise(none, none + settings.pop("noise"))
        if "noise" in settings
        else OrnsteinUhlenbeckActionNoise(none, none + settings.pop("correlated"))
    )
    model = TD3("MlpPolicy", gym.make(env_id), **settings, seed=seed, device="cpu")
    return _watched(model, env_id, seed, lambda observation: observation)


AGENTS = {"ours": ours, "DQN": dqn, "PPO": ppo, "SAC": sac, "TD3": td3}
#: the settings of each that has some; it is run where it has
SETTINGS = {"DQN": DQN_SETTINGS, "PPO": PPO_SETTINGS, "SAC": SAC_SETTINGS, "TD3": TD3_SETTINGS}


def make_missing(file: Path, seeds: int, names: list[str]) -> None:
    """Make the runs that are not in the file."""
    import torch

    torch.set_num_threads(1)
    done = {(line["env"], line["agent"], line["seed"]) for line in lines(file)}
    for i in range(seeds):
        for env_id in STEPS:
            for name, learn in AGENTS.items():
                seed = FIRST[name] + i
                wanted = not names or {env_id, name} & set(names)
                possible = env_id in SETTINGS.get(name, STEPS)
                if (env_id, name, seed) in done or not wanted or not possible:
                    continue
                print(f"{env_id}, {name}, seed {seed}", file=sys.stderr, flush=True)
                start = time.process_time()
                curve = learn(env_id, seed)
                found = {"env": env_id, "agent": name, "seed": seed, "curve": curve}
                with file.open("a") as out:
                    out.write(json.dumps(found | {"s": time.process_time() - start}) + "\n")


def curves(file: Path, env_id: str, agent: str) -> np.ndarray:
    """Returns by seed and check, shape (seeds, checks)."""
    found = [line for line in lines(file) if (line["env"], line["agent"]) == (env_id, agent)]
    return np.array([[value for _, value in line["curve"]] for line in found])


def print_table(file: Path) -> None:
    """A row for each environment and agent."""
    print("| environment | steps | agent | seeds | mean (95%) | range | seconds |")
    print("|---|---|---|---|---|---|---|")
    for env_id, steps in STEPS.items():
        for name in AGENTS:
            found = curves(file, env_id, name)
            if not len(found):
                continue
            last, of_agent = found[:, -1], (env_id, name)
            seconds = [x["s"] for x in lines(file) if (x["env"], x["agent"]) == of_agent]
            print(
                f"| `{env_id}` | {steps:,} | {name} | {len(last)} | {mean_interval(last)} "
                f"| {last.min():.4g} to {last.max():.4g} | {np.median(seconds):.0f} |"
            )


def draw(file: Path, image: Path) -> None:
    """The mean curves, with their range over seeds."""
    import matplotlib.pyplot as plt

    shown = [env_id for env_id in STEPS if any(len(curves(file, env_id, a)) for a in AGENTS)]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.6 * len(shown), 3.2), squeeze=False)
    for axis, env_id in zip(axes[0], shown, strict=True):
        steps = STEPS[env_id] * np.arange(1, CHECKS + 1) / CHECKS
        for name in AGENTS:
            found = curves(file, env_id, name)
            if len(found):
                (line,) = axis.plot(steps, found.mean(axis=0), marker=".", label=name)
                low, high = found.min(axis=0), found.max(axis=0)
                axis.fill_between(steps, low, high, color=line.get_color(), alpha=0.15, lw=0)
        axis.set(title=env_id, xlabel="steps")
        axis.ticklabel_format(axis="x", style="sci", scilimits=(3, 3))
    axes[0][0].set_ylabel("return of the greedy policy")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(image, dpi=120)


def main() -> None:
    """Make what is missing, or print and draw."""
    file, arguments = Path(sys.argv[1]), sys.argv[2:]
    if arguments[:1] == ["--markdown"]:
        print_table(file)
        draw(file, Path(arguments[1]))
        return
    seeds = int(arguments[0]) if arguments else 5
    make_missing(file, seeds, arguments[1:])
    print_table(file)


if __name__ == "__main__":
    main()
