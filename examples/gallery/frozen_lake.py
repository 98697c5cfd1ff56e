"""
A table on a grid
=================

Where observations are numbers of cells, an agent learns a table. On Gymnasium's frozen lake the ice
is slippery, so that the best action often points away from the goal: it must not slip into a hole.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

from rblspi import OPSRL, evaluate
from rblspi.plotting import style

LAKE = "FrozenLake-v1"
agent = OPSRL(LAKE, discount=0.98, seed=1).learn(15_000)
share = evaluate(agent, episodes=300).mean_return
print(f"{agent.features.size} states; reaches the goal in a share of {share} of the episodes")

# %%

cells = np.array(gym.make(LAKE).unwrapped.desc, dtype=str)
values = agent.action_values(np.arange(16))
action = values.mean.argmax(axis=1).reshape(4, 4)
std = np.take_along_axis(values.std, values.mean.argmax(axis=1)[:, None], 1).reshape(4, 4)
with style.style():
    figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.4), layout="constrained")
    for axes, numbers, title in zip(
        panels,
        (values.mean.max(axis=1).reshape(4, 4), std),
        ("value", "standard deviation"),
        strict=True,
    ):
        shown = np.ma.masked_where(np.isin(cells, ["H", "G"]), numbers)
        figure.colorbar(axes.pcolormesh(shown, cmap="viridis"), ax=axes)
        axes.set(title=title, xticks=[], yticks=[], aspect="equal")
        axes.invert_yaxis()
        axes.grid(visible=False)
        for (i, j), kind in np.ndenumerate(cells):
            text = {"H": "hole", "G": "goal"}.get(kind, "←↓→↑"[action[i, j]])
            axes.text(
                j + 0.5,
                i + 0.5,
                text,
                ha="center",
                va="center",
                fontsize=11,
                color="black" if kind in "HG" else "white",
            )
