"""The two online algorithms as a textbook writes them, and RBLSPI walks the same trajectory.

Dense matrices, `inv`, one transition at a time: slow and plain. The tests check the library's
agents against these versions, and the benchmarks measure how much faster the agents are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi import RBLSPI, RBFGrid

Vector = NDArray[np.float64]


class Walk(NamedTuple):
    """What a learner did and where it ended."""

    actions: NDArray[np.int64]
    rewards: Vector
    weights: Vector


def action_features(phi: Vector, action: int, actions: int) -> Vector:
    """phi(s, a) = e_a (x) phi(s)."""
    out = np.zeros(actions * len(phi))
    out[action * len(phi) : (action + 1) * len(phi)] = phi
    return out


def greedy(phi: Vector, weights: Vector) -> int:
    """argmax_a phi'theta_a."""
    return int(np.argmax(weights.reshape(-1, len(phi)) @ phi))


def rblspi(
    env: gym.Env[Any, Any],
    seed: int,
    phi: Callable[[Any], Vector],
    rng: np.random.Generator,
    steps: int,
    *,
    discount: float,
    prior_precision: float,
    noise_precision: float,
    update_every: int,
    ridge: float = 1e-6,
) -> Walk:
    """Algorithm 1 of the paper; ``update_every`` 0 stands for the end of the episode."""
    actions = int(env.action_space.n)
    observation, _ = env.reset(seed=seed)
    x = phi(observation)
    k = actions * len(x)
    A, C, b = np.zeros((k, k)), ridge * np.eye(k), np.zeros(k)
    m = rng.standard_normal(k)
    theta = m.copy()
    taken, rewards = np.empty(steps, np.int64), np.empty(steps)
    for t in range(steps):
        a = greedy(x, theta)
        observation, r, terminated, truncated, _ = env.step(a)
        y = phi(observation)
        f = action_features(x, a, actions)
        g = np.zeros(k) if terminated else action_features(y, greedy(y, m), actions)
        A += np.outer(f, f - discount * g)
        C += np.outer(f, f)
        b += f * r
        ended = terminated or truncated
        if due(update_every, t + 1, ended):
            z = rng.standard_normal(k)
            C_inverse = np.linalg.inv(C)
            precision = prior_precision * np.eye(k) + noise_precision * A.T @ C_inverse @ A
            S = np.linalg.inv(precision)
            m = noise_precision * S @ A.T @ C_inverse @ b
            # N(m, S): any square root of S will do; this one is the agent's.
            theta = m + np.linalg.inv(np.linalg.cholesky((precision + precision.T) / 2)).T @ z
        taken[t], rewards[t] = a, r
        x = y
        if ended:
            observation, _ = env.reset()
            x = phi(observation)
    return Walk(taken, rewards, m)


def online_lspi(
    env: gym.Env[Any, Any],
    seed: int,
    phi: Callable[[Any], Vector],
    rng: np.random.Generator,
    steps: int,
    *,
    discount: float,
    on_policy: bool,
    update_every: int,
    epsilon: float = 1.0,
    decay: float = 0.9968,
    diagonal: float = 1e-6,
) -> Walk:
    """Online LSPI with epsilon-greedy exploration."""
    actions = int(env.action_space.n)
    observation, _ = env.reset(seed=seed)
    x = phi(observation)
    k = actions * len(x)
    A, b, theta = diagonal * np.eye(k), np.zeros(k), np.zeros(k)
    taken, rewards = np.empty(steps, np.int64), np.empty(steps)
    chosen = None

    def explore(features: Vector) -> int:
        if rng.random() < epsilon:
            return int(rng.random() * actions)
        return greedy(features, theta)

    for t in range(steps):
        a = explore(x) if chosen is None else chosen
        observation, r, terminated, truncated, _ = env.step(a)
        y = phi(observation)
        epsilon *= decay
        chosen = None
        f, g = action_features(x, a, actions), np.zeros(k)
        if not terminated:
            next_action = explore(y) if on_policy else greedy(y, theta)
            chosen = next_action if on_policy and not truncated else None
            g = action_features(y, next_action, actions)
        A += np.outer(f, f - discount * g)
        b += f * r
        ended = terminated or truncated
        if due(update_every, t + 1, ended):
            theta = np.linalg.solve(A, b)
        taken[t], rewards[t] = a, r
        x = y
        if ended:
            observation, _ = env.reset()
            x = phi(observation)
    return Walk(taken, rewards, theta)


def stepwise_doubly_robust(
    rewards: Vector, ratios: Vector, q: Vector, v: Vector, discount: float
) -> float:
    """Equation (10) of Jiang and Li (2016) for one episode of T steps.

    Ratios are 1{a = pi(s)} / p, q is Q(s_t, a_t), and v is V(s_t) for t = 0 to T, 0 if s_T is
    terminal. With q = v = 0 this is per-decision importance sampling.
    """
    value = float(v[-1])
    for t in reversed(range(len(rewards))):
        value = float(v[t] + ratios[t] * (rewards[t] + discount * value - q[t]))
    return value


def fitted_q_iteration(
    transitions: Any,
    phi: Callable[[Any], Vector],
    actions: int,
    iterations: int,
    *,
    discount: float,
    penalty: float,
    constant: Vector,
) -> Vector:
    """Fitted Q iteration with ridge regression towards a constant, one transition at a time.

    ``constant`` has the weights of the function that is 1 everywhere.
    """
    rows = [tuple(row) for row in zip(*transitions.columns().values(), strict=True)]
    rewards = [row[2] for row in rows]
    low, high = min(rewards) / (1 - discount), max(rewards) / (1 - discount)
    ends = any(row[4] for row in rows)
    if ends:
        low, high = min(low, *rewards), max(high, *rewards)
    start = 0.0 if ends else np.mean(rewards) / (1 - discount)
    theta = np.tile(start * constant, (actions, 1))
    for _ in range(iterations):
        targets = [
            r + (0.0 if end else discount * min(max(float((theta @ phi(after)).max()), low), high))
            for _, _, r, after, end, _ in rows
        ]
        mean = float(np.mean(targets))
        matrices = [penalty * np.eye(len(constant)) for _ in range(actions)]
        sides = [penalty * mean * constant for _ in range(actions)]
        for (s, a, *_), target in zip(rows, targets, strict=True):
            matrices[a] = matrices[a] + np.outer(phi(s), phi(s))
            sides[a] = sides[a] + target * phi(s)
        theta = np.array([np.linalg.inv(m) @ b for m, b in zip(matrices, sides, strict=True)])
    return theta.ravel()


def due(every: int, transitions: int, ended: bool) -> bool:
    """Every so many transitions of the whole run; 0: at the end of every episode."""
    return ended if every == 0 else transitions % every == 0


def agent_rng(seed: int) -> np.random.Generator:
    """The random numbers that an agent with this seed draws from."""
    return np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[0])


def main() -> None:
    name, steps = "rblspi/MountainCar-v0", 2000
    settings = {"discount": 0.99, "prior_precision": 0.001, "noise_precision": 0.1}
    agent = RBLSPI(name, RBFGrid(4), update_every=20, seed=0, **settings).learn(steps)
    env = gym.make(name)
    walk = rblspi(
        *(env, agent.session.seed, agent.features, agent_rng(0), steps),
        update_every=20,
        **settings,
    )
    difference = np.linalg.norm(agent.state.mean - walk.weights) / np.linalg.norm(walk.weights)
    print(f"the textbook chose each action {np.bincount(walk.actions).tolist()} times")
    print(f"its weights after {steps} steps are those of RBLSPI to {difference:.0e}")


if __name__ == "__main__":
    main()
