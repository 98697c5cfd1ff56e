"""
What an agent knows, and what it does not
=========================================

Maps of value, uncertainty and policy on the puddle world, and a few value functions drawn from the
posterior. RBLSPI explores by acting on such draws.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import RBLSPI, RBFGrid
from rblspi.plotting import maps, style

agent = RBLSPI(
    *("rblspi/PuddleWorld-v0", RBFGrid(8)), prior_precision=0.1, noise_precision=1.0, seed=0
).learn(episodes=60)
with style.style():
    figure = maps.draw(maps.compute(agent, resolution=81))

# %%
# How likely is each action the best one? Up and right lead to the goal, but sixty episodes leave
# much doubt.

names = ["up", "down", "left", "right"]
for where, observation in (("near the goal", [0.9, 0.9]), ("at the bottom left", [0.1, 0.1])):
    likely = agent.probability_best(observation)
    print(where, {name: float(p.round(2)) for name, p in zip(names, likely, strict=True)})

# %%
# Draws of the value function along the diagonal, from the lower left to the goal. They differ where
# the agent has seldom been.

diagonal = np.linspace(0.02, 0.98, 60)
values = agent.action_values(np.column_stack([diagonal, diagonal]))
best = values.mean.argmax(axis=1)
with style.style():
    second, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.plot(diagonal, values.draws[:, np.arange(60), best].T, color=style.SKY, lw=0.7)
    axes.plot(diagonal, values.mean[np.arange(60), best], color=style.BLUE, lw=2, label="mean")
    axes.plot([], [], color=style.SKY, label="draws")
    axes.set(xlabel="x = y", ylabel="value of the best action")
    axes.legend()
