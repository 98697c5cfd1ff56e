"""A policy of a shop whose states have a number and a word, made without learning."""

import gymnasium as gym
import numpy as np

from rblspi import LinearPolicy, Polynomial
from rblspi.data.encoding import Encoding, Input
from tests.support.logs import ACTIONS, WORDS


def shop_policy(fill=None):
    """A policy with random weights; ``fill`` stands for a missing stock."""
    inputs = Encoding((Input("stock", fill=fill), Input("weekday", WORDS)))
    space = gym.spaces.Box(-1.0, 1.0, (len(inputs.names),), np.float64)
    basis = Polynomial(2)
    features = basis.build(space)
    return LinearPolicy(
        basis=basis,
        features=features,
        weights=np.random.default_rng(0).standard_normal(len(ACTIONS) * features.size),
        observation_space=space,
        action_space=gym.spaces.Discrete(len(ACTIONS)),
        action_names=ACTIONS,
        inputs=inputs,
    )


def saved_policy(folder):
    """A file with such a policy."""
    shop_policy().save(folder / "policy.npz")
    return folder / "policy.npz"
