"""
Your own basis
==============

A basis is any function from an observation to a vector. What you know about a problem goes there.
The chain walk looks the same from both ends, so a state and its mirror image have the same value if
actions are random. Ten features that know this need less data than a table with twenty.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import LSTD, FunctionBasis, OneHot, Polynomial, jit
from rblspi.environments.chain_walk import ChainWalk
from rblspi.plotting import style
from rblspi.rollout import collect

DISCOUNT = 0.9
chain, states = ChainWalk(), np.arange(20)


def mirrored(state):
    """A 1 at the distance from the nearer end."""
    features = np.zeros(10)
    features[min(state, 19 - state)] = 1.0
    return features


# %%
# The same basis for compiled code writes its result into ``out``. Then an agent learns with it
# inside the compiled loop. ``parameters`` could hold constants.


@jit
def compiled(parameters, observation, out):
    """The same, written into ``out``."""
    out[:] = 0.0
    out[int(min(observation[0], 19 - observation[0]))] = 1.0


space = chain.observation_space
plain, fast = FunctionBasis(mirrored).build(space), FunctionBasis(compiled, size=10).build(space)
assert np.array_equal(plain(states), fast(states))

# %%
# Estimate the values of random actions from logs of several sizes, and compare with the truth.

moves = chain.transition_probabilities().mean(axis=0)
truth = np.linalg.solve(np.eye(20) - DISCOUNT * moves, chain.rewards)
bases = {"OneHot()": OneHot(), "mirrored": mirrored, "Polynomial(4)": Polynomial(4)}
sizes, seeds = (300, 1_000, 3_000, 10_000), range(20)
errors = {name: np.empty((len(seeds), len(sizes))) for name in bases}
for seed in seeds:
    (log,) = collect(chain, transitions=max(sizes), seed=seed)
    for i, size in enumerate(sizes):
        for name, basis in bases.items():
            lstd = LSTD(basis, discount=DISCOUNT, ridge=0.1, observation_space=space)
            values = lstd.fit(log.rows(0, size)).predict(states)
            errors[name][seed, i] = np.sqrt(np.mean((values - truth) ** 2))

with style.style():
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for (name, found), marker in zip(errors.items(), "os^", strict=True):
        axes.loglog(sizes, np.median(found, axis=0), f"{marker}-", label=name)
    axes.set(xlabel="transitions in the log", ylabel="error of the values, median of 20 logs")
    axes.legend()
