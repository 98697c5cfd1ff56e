"""Garnet problems: random Markov decision processes, small enough to be solved exactly."""

from typing import NamedTuple

import numpy as np

from rblspi.data.transitions import Transitions


class Garnet(NamedTuple):
    """Every state and action leads to a few random states; rewards have noise of deviation 1."""

    probabilities: np.ndarray  # (states, actions, states)
    rewards: np.ndarray  # their means (states, actions)
    policy: np.ndarray  # the policy under evaluation: an action for every state
    ends: float = 0.0  # the probability that a transition is the last

    @classmethod
    def random(cls, rng, states=20, actions=3, branching=3, ends=0.0):
        probabilities = np.zeros((states, actions, states))
        for row in probabilities.reshape(-1, states):
            row[rng.choice(states, branching, replace=False)] = rng.dirichlet(np.ones(branching))
        rewards = rng.standard_normal((states, actions))
        return cls(probabilities, rewards, rng.integers(actions, size=states), ends)

    @property
    def states(self):
        return np.arange(len(self.policy))

    def act(self, observations):
        return self.policy[observations]

    def values(self, discount, chosen=None):
        """State values of the policy, or of one that chooses with these probabilities."""
        chosen = np.eye(self.rewards.shape[1])[self.policy] if chosen is None else chosen
        onward = np.einsum("sa,sat->st", chosen, self.probabilities)
        rewards = (chosen * self.rewards).sum(axis=1)
        return np.linalg.solve(np.eye(len(onward)) - discount * (1 - self.ends) * onward, rewards)

    def action_values(self, discount):
        after = discount * (1 - self.ends) * self.probabilities @ self.values(discount)
        return self.rewards + after

    def following(self, share):
        """Probabilities of actions: the policy's with this share, otherwise any."""
        actions = self.rewards.shape[1]
        return share * np.eye(actions)[self.policy] + (1 - share) / actions

    def log(self, rng, episodes, length, chosen, noise=1.0):
        """Episodes from uniform first states, and the probability of every action in them."""
        below = chosen.cumsum(axis=1)
        state = rng.integers(len(self.policy), size=episodes)
        going, steps = np.ones(episodes, bool), []
        cumulative = self.probabilities.cumsum(axis=2)
        for step in range(length):
            action = (rng.random(episodes)[:, None] > below[state]).sum(axis=1)
            action = np.minimum(action, below.shape[1] - 1)
            after = (rng.random(episodes)[:, None] > cumulative[state, action]).sum(axis=1)
            after = np.minimum(after, len(self.policy) - 1)
            reward = self.rewards[state, action] + noise * rng.standard_normal(episodes)
            over = rng.random(episodes) < self.ends
            cut = np.full(episodes, step == length - 1) & ~over
            steps.append((state, action, reward, after, over, cut, chosen[state, action], going))
            going, state = going & ~over, after
        columns = [np.stack(column, axis=1) for column in zip(*steps, strict=True)]
        kept = columns.pop()
        *log, probability = (column[kept] for column in columns)
        return Transitions.from_arrays(*log), probability
