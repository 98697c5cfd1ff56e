"""
Exploring the deep sea, as a film of the posterior
==================================================

A diver in the deep sea finds a treasure only if it goes right at every step, and every step to the
right costs something. Whoever explores at random needs about 2^N episodes. ``OPSRL`` keeps a
posterior over models of the sea, draws one of them for every episode, and acts as is best in that
model. In a drawn model, what never happened may lead to something good, so it goes and looks.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

from rblspi import OPSRL
from rblspi.plotting import style

SIZE = 10
agent = OPSRL("rblspi/DeepSea-v0", seed=1)
frames = []
for episodes in range(0, 61, 4):
    if episodes:
        agent.learn(episodes=4, reset_num_timesteps=False)
    memory = agent.session.memory
    seen = np.bincount(memory.observations[: memory.size, 0].astype(int), minlength=SIZE**2)
    sampled = agent.policy(explore=True).values(np.arange(SIZE**2)).max(axis=1)
    found = int((agent.episodes[:, 1] > 0.5).sum())
    frames.append((episodes, seen.reshape(SIZE, SIZE), sampled.reshape(SIZE, SIZE), found))
print(f"the treasure was found in {found} of {episodes} episodes")

# %%
# On the left, how often each cell was visited, as a logarithm; on the right, the values of the
# model that was drawn for the next episode, relative to the highest. At first hope is everywhere
# below the surface. Once the treasure is found, the values lead along the diagonal. Cells above the
# diagonal cannot be reached.

above = np.triu(np.ones((SIZE, SIZE), bool), 1)
with style.style():
    figure, panels = plt.subplots(1, 2, figsize=(6.6, 3.3), layout="constrained")
    titles = ("visits", "values of a drawn model")
    meshes = []
    for axes, title, most in zip(panels, titles, (2.0, 1.0), strict=True):
        axes.set(title=title, xticks=[], yticks=[], aspect="equal")
        axes.invert_yaxis()
        axes.grid(visible=False)
        meshes.append(axes.pcolormesh(np.zeros((SIZE, SIZE)), cmap="viridis", vmin=0, vmax=most))


def show(frame):
    episodes, seen, sampled, found = frame
    figure.suptitle(f"after {episodes} episodes, {found} with the treasure")
    for mesh, numbers in zip(
        meshes, (np.log10(1 + seen), sampled / max(sampled[~above].max(), 1e-9)), strict=True
    ):
        mesh.set_array(np.ma.masked_where(above, numbers))


film = FuncAnimation(figure, show, frames=frames, interval=350)
show(frames[-1])
