"""OPSRL as a textbook writes it: dictionaries, plain value iteration, one number at a time."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

END = "end"


class TextbookOPSRL:
    """Lists of what was seen, draws of weights, and values by the equation of line 4."""

    def __init__(self, states: int, actions: int, discount: float) -> None:
        self.states, self.actions, self.discount = states, actions, discount
        self.pairs = [(s, a) for a in range(actions) for s in range(states)]
        self.counts: dict[Any, dict[Any, int]] = {pair: {} for pair in self.pairs}
        self.weights: dict[Any, dict[Any, float]] = {pair: {} for pair in self.pairs}
        self.rewards: dict[Any, list[float]] = {pair: [] for pair in self.pairs}
        self.surprises, self.exposure = [1.0] * actions, [1.0] * actions
        self.unknown: dict[Any, float] = {}
        self.errors: dict[Any, float] = {}
        self.prior: Any = None

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool, weight: float) -> None:
        outcome, n = END if terminated else s2, len(self.rewards[s, a])
        if n > 0:
            self.exposure[a] += 1 / (n + 1)
            self.surprises[a] += outcome not in self.counts[s, a]
        self.counts[s, a][outcome] = self.counts[s, a].get(outcome, 0) + 1
        self.weights[s, a][outcome] = self.weights[s, a].get(outcome, 0.0) + weight
        self.rewards[s, a].append(r)

    def draw(self, rng: np.random.Generator) -> None:
        for pair in self.pairs:
            self.unknown[pair], self.errors[pair] = rng.standard_normal(), rng.standard_normal()
            for outcome, n in self.counts[pair].items():
                self.weights[pair][outcome] = rng.standard_gamma(n)

    def scale(self) -> tuple[float, float]:
        """v and S."""
        everything = [r for rewards in self.rewards.values() for r in rewards]
        if not everything:
            return 0.0, 1.0
        q = sum(seen.get(END, 0) for seen in self.counts.values()) / len(everything)
        horizon = 1 / (1 - self.discount * (1 - q))
        v, differences = horizon * np.mean(everything), []
        for pair, rewards in self.rewards.items():
            if rewards:
                e = self.counts[pair].get(END, 0) / len(rewards)
                better = np.mean(rewards) + self.discount * (1 - e) * v - v
                differences.append(abs(better) * (e + (1 - e) * horizon))
        size = max(abs(np.mean(rewards)) for rewards in self.rewards.values() if rewards)
        spread = max(differences)
        if spread <= 1e-9 * horizon * size:
            spread = size or 1.0
        return float(v), float(spread)

    def find_prior(self) -> None:
        """v, S, the largest variance of rewards, and c by action."""
        variances = [np.var(r, ddof=1) for r in self.rewards.values() if len(r) > 1]
        c = [n / d for n, d in zip(self.surprises, self.exposure, strict=True)]
        self.prior = (*self.scale(), max([0.0, *variances]), c)

    def values(self, explore: bool) -> np.ndarray:
        """Q(s, a), shape (states, actions), by plain value iteration."""
        q = np.zeros((self.states, self.actions))
        for _ in range(100_000):
            after = {END: 0.0, **{s: q[s].max() for s in range(self.states)}}
            before, q = (
                q,
                np.array(
                    [
                        [self._backup((s, a), after, explore) for a in self.actions_]
                        for s in range(self.states)
                    ]
                ),
            )
            if np.abs(q - before).max() <= 1e-12 * max(np.abs(q).max(), 1e-300):
                break
        return q

    @property
    def actions_(self) -> range:
        return range(self.actions)

    def _backup(self, pair: Any, after: Any, explore: bool) -> float:
        rewards, n = self.rewards[pair], len(self.rewards[pair])
        v, spread, noise, concentrations = self.prior
        c = concentrations[pair[1]]
        unknown = v + spread * (3 + self.unknown[pair]) if explore else v
        if not n:
            return unknown
        squares = n * np.var(rewards)
        error = np.sqrt(noise + squares) / n * self.errors[pair] if explore else 0.0
        weights = self.weights[pair] if explore else self.counts[pair]
        reward = np.mean(rewards) + error
        known = sum(w * (reward + self.discount * after[o]) for o, w in weights.items())
        return float((known + c * unknown) / (sum(weights.values()) + c))


def walk(
    env: gym.Env[Any, Any], seed: int, rng: np.random.Generator, steps: int, discount: float
) -> tuple[list[int], TextbookOPSRL]:
    """The actions of so many steps, and what was learnt by them."""
    learner = TextbookOPSRL(int(env.observation_space.n), int(env.action_space.n), discount)
    s, _ = env.reset(seed=seed)
    actions, due, episodes, drawn, seen = [], "draw", 0, 0, []
    before = dict.fromkeys(learner.pairs, 0)
    for step in range(1, steps + 1):
        if due:
            if due == "draw":
                learner.draw(rng)
                drawn = step - 1
            if due != "plan":
                learner.find_prior()
            q, due = learner.values(explore=True), ""
            before = {pair: len(rewards) for pair, rewards in learner.rewards.items()}
        a = int(q[s].argmax())
        actions.append(a)
        s2, r, terminated, truncated, _ = env.step(a)
        learner.observe(s, a, float(r), s2, terminated, rng.standard_exponential())
        beyond = not seen or not min(seen) <= float(r) <= max(seen)
        seen.append(float(r))
        if terminated or truncated:
            episodes, due = episodes + 1, "draw"
            s, _ = env.reset()
            continue
        if episodes == 0 and (step - drawn) * (1 - discount) >= 1:
            due = "draw"
        elif beyond:
            due = "scale"
        elif len(learner.rewards[s, a]) >= max(2 * before[s, a], 1):
            due = "plan"
        s = s2
    return actions, learner
