"""
Comparing algorithms, with honest intervals
===========================================

One run says little. Here two algorithms learn the mountain car with five seeds each. Whether one is
better is told by the 95% confidence interval of the difference, by Welch's version of Student's t.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import RBLSPI, OnlineLSPI, RBFGrid, evaluate
from rblspi.core.intervals import difference_interval, half_width
from rblspi.plotting import style

CAR, SEEDS, EPISODES, BLOCK = "rblspi/MountainCar-v0", 5, 40, 10
algorithms = {"RBLSPI": RBLSPI, "online LSPI": OnlineLSPI}
learning, greedy = {}, {}
for name, algorithm in algorithms.items():
    agents = [
        algorithm(CAR, RBFGrid(8), seed=seed).learn(episodes=EPISODES) for seed in range(SEEDS)
    ]
    lengths = np.array([agent.episodes[:, 0] for agent in agents])
    learning[name] = lengths.reshape(SEEDS, -1, BLOCK).mean(axis=2)
    greedy[name] = [evaluate(agent, episodes=20).lengths.mean() for agent in agents]

# %%

for name, lengths in greedy.items():
    print(f"{name:12} {np.mean(lengths):.1f} steps to the goal on average")
mean, low, high = difference_interval(*greedy.values())
print(f"difference   {mean:.1f} steps, with a 95% interval from {low:.1f} to {high:.1f}")

# %%
# While they learn (left), and what the policy at the end is worth in each of the runs (right). Dots
# are runs: nothing is hidden in a mean.

with style.style():
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.4, 3), layout="constrained", width_ratios=(2, 1)
    )
    where = BLOCK * (np.arange(EPISODES // BLOCK) + 0.5)
    for place, (name, colour) in enumerate(zip(learning, (style.BLUE, style.BLACK), strict=True)):
        mean, half = learning[name].mean(axis=0), half_width(learning[name])
        left.plot(where, mean, "o-", color=colour, label=name)
        left.fill_between(where, mean - half, np.minimum(mean + half, 500), color=colour, alpha=0.2)
        right.plot(np.full(SEEDS, place), greedy[name], "o", color=colour, alpha=0.5)
    left.set(xlabel="episode", ylabel="steps to the goal", ylim=(0, None))
    left.legend()
    right.set_xticks(range(2), list(greedy))
    right.set(xlim=(-0.5, 1.5), title="policy at the end", ylim=(0, None))
