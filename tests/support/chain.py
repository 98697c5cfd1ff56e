"""Logged transitions of the chain walk."""

import numpy as np

from rblspi.data.transitions import Transitions
from rblspi.environments.chain_walk import LEFT, RIGHT, ChainWalk
from rblspi.features import Polynomial

DISCOUNT = 0.9
OPTIMAL = np.array([LEFT] * 10 + [RIGHT] * 10)
STATES = np.arange(20)
BASIS = Polynomial(4, scale=10, low=-1, high=19)


def random_episodes(count, length, seed):
    """Episodes of uniformly random actions, all walked side by side."""
    rng = np.random.default_rng(seed)
    chain = ChainWalk()
    below = chain.transition_probabilities().cumsum(axis=2)
    states = rng.integers(20, size=count)
    steps = []
    for _ in range(length):
        actions = rng.integers(2, size=count)
        after = (rng.random(count)[:, None] > below[actions, states]).sum(axis=1)
        steps.append((states, actions, chain.rewards[states], after))
        states = after
    columns = [np.stack(column, axis=1) for column in zip(*steps, strict=True)]
    never = np.zeros(length, bool)
    last = np.arange(length) == length - 1
    return [Transitions.from_arrays(*(c[i] for c in columns), never, last) for i in range(count)]


def in_proportion():
    """Every state and action ten times, with next states as often as they are probable."""
    rows = [
        (state, action, reward, after)
        for action, probabilities in enumerate(ChainWalk().transition_probabilities())
        for state, reward in enumerate(ChainWalk().rewards)
        for after, probability in enumerate(probabilities[state])
        for _ in range(round(10 * probability))
    ]
    states, actions, rewards, after = (np.array(column) for column in zip(*rows, strict=True))
    return Transitions.from_arrays(states, actions, rewards, after, np.zeros(len(rows), bool))
