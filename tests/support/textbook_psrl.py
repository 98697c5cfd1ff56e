"""PSRL as a textbook writes it: dictionaries, plain value iteration, one number at a time."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

END = "end"


class TextbookPSRL:
    """Tables of what was seen, models drawn from them, and the best policies of these models."""

    def __init__(self, states: int, actions: int, discount: float) -> None:
        self.states, self.actions, self.discount = states, actions, discount
        pairs = [(s, a) for a in range(actions) for s in range(states)]
        self.outcomes: dict[Any, dict[Any, int]] = {pair: {} for pair in pairs}
        self.rewards: dict[Any, list[float]] = {pair: [] for pair in pairs}
        self.all_rewards: list[float] = []
        self.surprises, self.exposure = [1.0] * actions, [1.0] * actions
        self.terminations = 0

    def observe(self, s: int, a: int, r: float, s2: int, terminated: bool) -> None:
        seen, n = self.outcomes[s, a], len(self.rewards[s, a])
        outcome = END if terminated else s2
        if n > 0:
            self.exposure[a] += 1 / (n + 1)
            self.surprises[a] += outcome not in seen
        seen[outcome] = seen.get(outcome, 0) + 1
        self.rewards[s, a].append(r)
        self.all_rewards.append(r)
        self.terminations += terminated

    def prior(self) -> tuple[float, float, float, float]:
        """q, mu h, h range, v_max."""
        rewards = self.all_rewards or [0.0]
        q = self.terminations / len(rewards)
        means = [float(np.mean(r)) for r in self.rewards.values() if r] or [0.0]
        size = max(means) - min(means) or abs(means[0]) or 1.0
        repeated = [r for r in self.rewards.values() if len(r) > 1]
        noise = max((float(np.var(r, ddof=1)) for r in repeated), default=0.0)
        h = 1 / (1 - self.discount * (1 - q))
        return q, h * float(np.mean(rewards)), h * size, noise

    def draw(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """P(s' | s, a), the end left out, and R(s, a)."""
        q, mean, std, noise = self.prior()
        P = np.zeros((self.states, self.actions, self.states))
        R = np.zeros((self.states, self.actions))
        for (s, a), seen in self.outcomes.items():
            r, z = self.rewards[s, a], rng.standard_normal()
            if not r:
                R[s, a] = mean + std * z
                continue
            R[s, a] = np.mean(r) + np.sqrt((noise + len(r) * np.var(r)) / len(r) ** 2) * z
            c = self.surprises[a] / self.exposure[a]
            gammas = [rng.standard_gamma(n) for n in (*seen.values(), c)]
            *named, elsewhere = np.array(gammas) / sum(gammas)
            for outcome, probability in zip(seen, named, strict=True):
                if outcome != END:
                    P[s, a, outcome] += probability
            over, place = rng.random() < q, int(self.states * rng.random())
            if not over:
                P[s, a, place] += elsewhere
        return P, R

    def mean(self) -> tuple[Any, Any]:
        """The mean of the posterior, in the form of `draw`."""
        q, mean, _, _ = self.prior()
        P = np.zeros((self.states, self.actions, self.states))
        R = np.full((self.states, self.actions), mean)
        for (s, a), seen in self.outcomes.items():
            if not seen:
                continue
            R[s, a] = np.mean(self.rewards[s, a])
            c = self.surprises[a] / self.exposure[a]
            total = sum(seen.values()) + c
            P[s, a] += (1 - q) * c / total / self.states
            for outcome, n in seen.items():
                if outcome != END:
                    P[s, a, outcome] += n / total
        return P, R

    def plan(self, P: Any, R: Any) -> Any:
        """Optimal action values of a model, shape (states, actions)."""
        values = np.zeros(self.states)
        while True:
            action_values = R + self.discount * P @ values
            change = np.abs(action_values.max(axis=1) - values).max()
            values = action_values.max(axis=1)
            if change <= 1e-13 * max(1.0, np.abs(values).max()):
                return action_values


def walk(
    env: gym.Env[Any, Any], seed: int, rng: np.random.Generator, steps: int, discount: float
) -> tuple[list[int], TextbookPSRL]:
    """Learn for some steps; the actions taken, and the tables at the end."""
    states, actions = int(env.observation_space.n), int(env.action_space.n)  # type: ignore
    learner = TextbookPSRL(states, actions, discount)
    s, _ = env.reset(seed=seed)
    taken: list[int] = []
    due, episodes, drawn_at = True, 0, 0
    visits_then: dict[Any, int] = {}
    for t in range(steps):
        if due:
            Q = learner.plan(*learner.draw(rng))
            visits_then = {pair: len(r) for pair, r in learner.rewards.items()}
            due, drawn_at = False, t
        a = int(Q[s].argmax())
        s2, r, terminated, truncated, _ = env.step(a)
        learner.observe(s, a, float(r), s2, terminated)
        taken.append(a)
        if terminated or truncated:
            due, episodes = True, episodes + 1
            s, _ = env.reset()
            continue
        new = len(learner.rewards[s, a]) - visits_then[s, a]
        if episodes == 0:
            doubled = new >= max(visits_then[s, a], 1)
            due = due or doubled or (t + 1 - drawn_at) * (1 - discount) >= 1
        s = s2
    return taken, learner
