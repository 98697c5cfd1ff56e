"""
A torque that is a number
=========================

``Pendulum-v1`` takes a torque from -2 to 2. After ten episodes, the agent swings it up and holds
it. The pictures show what it has learnt over the angle, which is 0 where the pendulum stands
upright, and the speed: the value of the best torque, how sure that is, and the torque itself. The
line is one more episode.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import rblspi
from rblspi.plotting import style
from rblspi.rollout import episodes

agent = rblspi.agent("Pendulum-v1", seed=0).learn(episodes=10)
print(rblspi.evaluate(agent, episodes=10).mean_return)

# %%
# An action is what the environment takes: an array with one torque. It lies between the five
# torques with which the agent explores, where a parabola through their values has its maximum.

upright = [1.0, 0.0, 0.3]
torque, _ = agent.predict(upright, deterministic=True)
print(torque, dict(zip(agent.action_set.listed, agent.action_values(upright).mean, strict=True)))

# %%
# Value, uncertainty and torque.

angle, speed = np.meshgrid(np.linspace(-np.pi, np.pi, 121), np.linspace(-8.0, 8.0, 121))
states = np.stack([np.cos(angle), np.sin(angle), speed], axis=-1).reshape(-1, 3)
values = agent.action_values(states)
best = values.mean.argmax(axis=1)[:, None]
torques, _ = agent.predict(states, deterministic=True)
pictures = {
    "value": (np.take_along_axis(values.mean, best, axis=1), "viridis"),
    "uncertainty": (np.take_along_axis(values.std, best, axis=1), "magma"),
    "torque": (torques, "RdBu"),
}
(way,) = episodes(
    gym.make("Pendulum-v1"), lambda seen: agent.predict(seen, deterministic=True)[0], 1, seed=3
)
path = np.array([step.observation for step in way])
turns = np.arctan2(path[:, 1], path[:, 0])
turns[1:][np.abs(np.diff(turns)) > np.pi] = np.nan  # do not draw a line across the picture
with style.style():
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    for panel, (title, (picture, colours)) in zip(panels, pictures.items(), strict=True):
        mesh = panel.pcolormesh(angle, speed, picture.reshape(angle.shape), cmap=colours)
        panel.plot(turns, path[:, 2], color="white" if title != "torque" else "black", lw=0.9)
        panel.set(title=title, xlabel="angle")
        panel.grid(visible=False)
        figure.colorbar(mesh, ax=panel)
    panels[0].set_ylabel("speed")
