"""
Your own basis
==============

A basis is any function from an observation to a vector. For the cart pole, squares and products of
the observation are enough, because a quadratic value function goes with a linear controller.
Fifteen features do what a grid in four dimensions needs many more for.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import RBLSPI, FunctionBasis, RBFGrid, evaluate, jit
from rblspi.plotting import style

POLE = "rblspi/CartPole-v0"


def squares(observation):
    """All products of two of 1, position, velocity, angle and angular velocity."""
    z = np.append(observation / [2.4, 2.5, 0.5, 2.5], 1.0)
    return np.outer(z, z)[np.triu_indices(5)]


# %%
# The same function, compiled: it writes its result into ``out`` and runs inside the compiled loop.


@jit
def compiled_squares(scale, observation, out):
    """The same products, written into ``out``."""
    k = 0
    for i in range(5):
        for j in range(i, 5):
            left = observation[i] / scale[i] if i < 4 else 1.0
            right = observation[j] / scale[j] if j < 4 else 1.0
            out[k] = left * right
            k += 1


bases = {
    "squares": squares,
    "squares, compiled": FunctionBasis(compiled_squares, 15, parameters=(2.4, 2.5, 0.5, 2.5)),
    "RBFGrid(3)": RBFGrid(3, low=(-2.4, -2.5, -0.5, -2.5), high=(2.4, 2.5, 0.5, 2.5)),
}
lengths = {}
for name, basis in bases.items():
    agent = RBLSPI(POLE, basis, prior_precision=0.01, noise_precision=0.1, seed=0)
    agent.learn(5_000)
    label = f"{name}\n{agent.features.size} features"
    lengths[label] = evaluate(agent, episodes=5).lengths

# %%

with style.style():
    figure, axes = plt.subplots(figsize=(6, 2.4), layout="constrained")
    axes.boxplot(lengths.values(), orientation="horizontal", tick_labels=list(lengths))
    axes.set(
        xlabel="steps until the pole falls, of 500, after 5,000 steps of learning", xlim=(0, 510)
    )
