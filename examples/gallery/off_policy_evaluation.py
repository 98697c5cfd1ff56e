"""
What is a policy worth? Several answers from one log
====================================================

The log was made by one policy, the question is about another. Methods of off-policy evaluation take
different things for granted: a basis, or the probabilities of the logged actions. Side by side they
show where one of them is wrong. On the chain walk the true value is known.
"""

import gymnasium as gym
import numpy as np

from rblspi import OneHot
from rblspi.environments.chain_walk import ChainWalk
from rblspi.offline import estimates
from rblspi.plotting import estimates as plotting
from rblspi.plotting import style
from rblspi.rollout import collect

DISCOUNT = 0.8
TARGET = np.repeat([0, 1], 5)  # to the nearer end
chain = ChainWalk(states=10)
truth = chain.exact_action_values(TARGET, DISCOUNT)[np.arange(10), TARGET].mean()

# %%
# The policy that logs does what the other one would do in 70% of the steps. We write down the
# probability of every action.

rng = np.random.default_rng(0)


def logging_policy(state):
    """The target's action with 70%, the other one with 30%."""
    return int(TARGET[state] if rng.random() < 0.7 else 1 - TARGET[state])


env = gym.wrappers.TimeLimit(ChainWalk(states=10), 30)
(log,) = collect(env, policy=logging_policy, episodes=150, seed=0)
propensities = np.where(log.actions == TARGET[log.observations], 0.7, 0.3)

# %%

found = estimates(
    log,
    lambda states: TARGET[states],
    OneHot(),
    2,
    discount=DISCOUNT,
    propensities=propensities,
    observation_space=chain.observation_space,
)
print(found)

# %%
# Importance sampling knows nothing of states. It multiplies ratios of probabilities, which few
# episodes survive, and its intervals are honest and wide.

with style.style():
    figure = plotting.draw(found, truth=truth)
