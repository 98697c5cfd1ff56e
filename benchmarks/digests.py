"""Digests of what every agent and estimator computes: equal digests mean equal bits.

    python -m benchmarks.digests --out before.json       # with one version of the code
    python -m benchmarks.digests --against before.json   # with another: names what differs

Agents learn for some thousand steps on the paper's domains and on one environment of every kind.
A digest is of the episodes, of the final weights and of the greedy actions along a fixed walk.
Estimators learn from fixed transitions, and digests are of their weights.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import rblspi
from rblspi import RBFGrid

#: of one agent, the environments with the steps that it makes in them
PAPER = {
    "rblspi/ChainWalk-v0": 2_000,
    "rblspi/MountainCar-v0": 4_000,
    "rblspi/SparseMountainCar-v0": 4_000,
    "rblspi/InvertedPendulum-v0": 4_000,
    "rblspi/CartPole-v0": 4_000,
    "rblspi/PuddleWorld-v0": 4_000,
}
NUMBERS = {"CartPole-v1": 3_000, "rblspi/PuddleWorld-v0": 3_000}
TABLES = {
    "FrozenLake-v1": 3_000,
    "Taxi-v4": 3_000,
    "Blackjack-v1": 2_000,
    "rblspi/RiverSwim-v0": 2_000,
    "rblspi/DeepSea-v0": 2_000,
}
#: by class: environments with steps, and settings
AGENTS: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "RBLSPI": (PAPER | NUMBERS | {"Acrobot-v1": 2_000, "Taxi-v4": 500}, {}),
    "OnlineLSPI": (PAPER | NUMBERS, {}),
    "FittedRmax": (PAPER | {"CartPole-v1": 3_000, "MountainCar-v0": 3_000}, {}),
    "OptimisticLSVI": ({"Acrobot-v1": 3_000, "CartPole-v1": 3_000, "Taxi-v4": 1_000}, {}),
    "OPSRL": (TABLES, {}),
    "PSRL": (TABLES, {}),
    "RLSVI": (NUMBERS | {"rblspi/RiverSwim-v0": 2_000}, {}),
    "LSVIUCB": (NUMBERS | {"rblspi/RiverSwim-v0": 2_000}, {}),
    "RmaxLSPI": (NUMBERS | {"rblspi/RiverSwim-v0": 2_000}, {}),
    "LBRL": ({"rblspi/MountainCar-v0": 2_000, "CartPole-v1": 2_000}, {}),
}
#: further settings of RBLSPI and of the baseline, as the paper has them
VARIANTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "episode": ("RBLSPI", "rblspi/MountainCar-v0", {"update_every": "episode"}),
    "precisions": (
        "RBLSPI",
        "rblspi/SparseMountainCar-v0",
        {"prior_precision": 1.0, "noise_precision": 1000.0, "basis": RBFGrid(8)},
    ),
    "on-policy": ("OnlineLSPI", "rblspi/PuddleWorld-v0", {"on_policy": True}),
}
#: a plain space, and one whose first number is an angle
SPACES = {
    "plane": gym.spaces.Box(np.array([-1.0, 0.0]), np.array([2.0, 1.0]), dtype=np.float64),
    "angle": gym.spaces.Box(
        np.array([-np.pi, -8.0, 0.0]), np.array([np.pi, 8.0, 1.0]), dtype=np.float64
    ),
}
BASES: dict[str, Any] = {
    "rbf": rblspi.RBFGrid(4),
    "polynomial": rblspi.Polynomial(3),
    "fourier": rblspi.Fourier(3),
    "random": rblspi.RandomFourier(64),
    "tiles": rblspi.TileCoding(4),
    "multilinear": rblspi.Multilinear(5),
}


def digest(*arrays: Any) -> str:
    """Of the bits of some arrays."""
    found = hashlib.sha256()
    for array in arrays:
        whole = np.ascontiguousarray(array)
        found.update(f"{whole.dtype}{whole.shape}".encode() + whole.tobytes())
    return found.hexdigest()[:24]


def walk(env_id: str, steps: int, seed: int = 7) -> dict[str, Any]:
    """Transitions of random actions, as columns."""
    env = gym.make(env_id)
    env.action_space.seed(seed)
    columns: dict[str, list[Any]] = {name: [] for name in ("s", "a", "r", "y", "end", "cut")}
    state, _ = env.reset(seed=seed)
    for _ in range(steps):
        action = env.action_space.sample()
        after, reward, end, cut, _ = env.step(action)
        row = (state, int(action) - int(env.action_space.start), reward, after, end, cut)
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
        state = env.reset()[0] if end or cut else after
    return {name: np.asarray(values) for name, values in columns.items()}


def of_agent(name: str, env_id: str, steps: int, settings: dict[str, Any]) -> str:
    """Of an agent that has learnt: episodes, weights, greedy actions."""
    agent = getattr(rblspi, name)(env_id, seed=3, **settings).learn(steps)
    env = gym.make(env_id)
    env.action_space.seed(1)
    state, _ = env.reset(seed=1)
    actions = []
    for _ in range(100):
        actions.append(int(agent.predict(state, deterministic=True)[0]))
        state, _, end, cut, _ = env.step(env.action_space.sample())
        if end or cut:
            state, _ = env.reset()
    return digest(agent.episodes, agent.policy().weights, np.array(actions))


def of_copies() -> str:
    """Of one agent that learns from four copies of a compiled and of a Python environment."""
    arrays = []
    for env_id in ("rblspi/CartPole-v0", "CartPole-v1"):
        agent = rblspi.RBLSPI(gym.make_vec(env_id, 4, vectorization_mode="sync"), seed=3)
        agent.learn(2_000)
        arrays += [agent.episodes, agent.policy().weights]
    return digest(*arrays)


def of_features(basis: Any, space: gym.spaces.Box) -> str:
    """Of features in a bounded space, for single observations and for a batch."""
    features = basis.build(space)
    seen = np.random.default_rng(0).uniform(space.low, space.high, (200, *space.shape))
    return digest(features(seen), np.stack([features(one) for one in seen[:20]]))


def of_estimators(env_id: str, basis: Any, discount: float) -> Iterator[tuple[str, str]]:
    """Of every estimator on one log: weights, and means and deviations of the posterior's."""
    data = walk(env_id, 4_000)
    log = rblspi.Transitions.from_arrays(*data.values())
    space, actions = gym.make(env_id).observation_space, int(data["a"].max()) + 1
    bounded = isinstance(space, gym.spaces.Discrete) or space.is_bounded()
    common = {"discount": discount, "observation_space": space if bounded else None}
    for name in ("LSPI", "BLSPI", "FQI"):
        fitted = getattr(rblspi, name)(basis, actions, **common).fit(log)
        yield name, digest(fitted.policy().weights)
    for name in ("LSTD", "BLSTD"):
        basis = rblspi.OneHot() if isinstance(space, gym.spaces.Discrete) else basis or RBFGrid(4)
        policy = lambda states: np.zeros(len(states), np.int64)  # noqa: E731
        fitted = getattr(rblspi, name)(basis, actions, **common).fit(log, policy)
        yield name, digest(fitted.weights_)


def tasks() -> Iterator[tuple[str, Callable[[], str | dict[str, str]]]]:
    """Everything that has a digest, by name."""
    for name, (environments, settings) in AGENTS.items():
        for env_id, steps in environments.items():
            yield (
                f"{name} {env_id}",
                lambda n=name, e=env_id, s=steps, k=settings: of_agent(n, e, s, k),
            )
    for label, (name, env_id, settings) in VARIANTS.items():
        yield f"{name} {label}", lambda n=name, e=env_id, k=settings: of_agent(n, e, 4_000, k)
    yield "copies", of_copies
    for label, basis in BASES.items():
        for kind, space in SPACES.items():
            yield f"features {label} {kind}", lambda b=basis, s=space: of_features(b, s)
    for env_id, basis in (
        ("rblspi/PuddleWorld-v0", RBFGrid(5)),
        ("rblspi/ChainWalk-v0", None),
        ("CartPole-v1", None),
        ("FrozenLake-v1", None),
    ):
        yield f"estimators {env_id}", lambda e=env_id, b=basis: dict(of_estimators(e, b, 0.95))


def main() -> None:
    """Compute digests, then write them or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name, compute in tasks():
        if options.only in name:
            found[name] = compute()
            print(name, found[name], flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    if options.against:
        before = json.loads(options.against.read_text())
        differ = [name for name in found if found[name] != before.get(name)]
        print("differ:" if differ else f"all {len(found)} are the same", *differ, sep="\n  ")
        sys.exit(bool(differ))


if __name__ == "__main__":
    main()
