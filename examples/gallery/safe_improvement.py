"""
Better than what is running?
============================

A policy from a log should replace the one that made it only if the log shows that it is better.
``compare`` estimates the difference, and ``.deploy`` is true only if the whole 95% interval is
above zero. ``trust`` gives the reasons for and against.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

from rblspi import BLSPI, OneHot
from rblspi.environments.chain_walk import ChainWalk
from rblspi.offline import compare, trust
from rblspi.plotting import style
from rblspi.rollout import collect

DISCOUNT = 0.9
chain = ChainWalk(states=10)
rng = np.random.default_rng(0)

# %%
# The running policy goes left, whatever happens, apart from one step in three. The other end would
# be nearer from half of the states.


def running(state):
    """Left, and now and then anything."""
    return 0 if rng.random() < 2 / 3 else int(rng.integers(2))


env = gym.wrappers.TimeLimit(ChainWalk(states=10), 50)
(log,) = collect(env, policy=running, episodes=200, seed=0)
half = int(np.flatnonzero(log.truncated)[99]) + 1  # learn from 100 episodes, compare on the others
learn, judge = log.rows(0, half), log.rows(half, log.size)

# %%

space = chain.observation_space
blspi = BLSPI(OneHot(), 2, discount=DISCOUNT, observation_space=space).fit(learn)
policies = {
    "from the log": blspi.act,
    "always right": lambda states: np.ones(len(states), int),
    "always left": lambda states: np.zeros(len(states), int),
    "to the middle": lambda states: (states < 5).astype(int),
}
found = {
    name: compare(policy, None, judge, OneHot(), 2, discount=DISCOUNT, observation_space=space)
    for name, policy in policies.items()
}
for name, comparison in found.items():
    print(f"{name}: {comparison}")

# %%

with style.style():
    figure, axes = plt.subplots(figsize=(6, 2), layout="constrained")
    for place, comparison in enumerate(found.values()):
        colour = style.GREEN if comparison.deploy else style.VERMILLION
        axes.plot((comparison.low, comparison.high), (place, place), color=colour, lw=2)
        axes.plot(comparison.mean, place, "o", color=colour)
    axes.axvline(0, color=style.GREY, ls="--", lw=1)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xlabel("value minus that of the running policy, 95% intervals")

# %%
# The trust report of the policy from the log.

print(trust(blspi.act, judge, OneHot(), discount=DISCOUNT, observation_space=space))
