r"""
Algorithm 1, line by line
=========================

RBLSPI as the paper writes it, in NumPy, with the paper's line numbers. It is slow and plain: every
improvement inverts matrices. The library's agent makes the same decisions with a faster update.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

from rblspi import RBLSPI, RBFGrid
from rblspi.plotting import style

CAR, STEPS = "rblspi/MountainCar-v0", 1500
alpha, beta, K, discount = 0.001, 0.1, 20, 0.99

agent = RBLSPI(
    *(CAR, RBFGrid(4)),
    prior_precision=alpha,
    noise_precision=beta,
    update_every=K,
    discount=discount,
    seed=0,
)
features = agent.features  # phi(s): 16 Gaussians and a constant
n, actions = features.size, agent.actions
k = n * actions

# %%
# phi(s, a) has phi(s) in the block of its action.


def phi(x, action):
    """The features of a state, in the block of an action."""
    blocks = np.zeros((actions, n))
    blocks[action] = x
    return blocks.ravel()


def greedy(weights, x):
    """The action of the highest value."""
    return int(np.argmax(weights.reshape(actions, n) @ x))


# %%
# The algorithm. To compare it with the library it draws from the same random numbers, and takes the
# same square root of the covariance.

rng = np.random.default_rng(np.random.SeedSequence(0).spawn(3)[0])
env = gym.make(CAR)
A, C, b = np.zeros((k, k)), 1e-6 * np.eye(k), np.zeros(k)
m = rng.standard_normal(k)  # line 1
theta = m.copy()
s, _ = env.reset(seed=agent.session.seed)  # line 2
x = features(s)
uncertainty = []
for t in range(1, STEPS + 1):  # line 3
    a = greedy(theta, x)  # line 4
    s, r, terminated, truncated, _ = env.step(a)  # line 5
    y = features(s)
    f = phi(x, a)
    f_next = np.zeros(k) if terminated else phi(y, greedy(m, y))
    A += np.outer(f, f - discount * f_next)  # line 6
    C += np.outer(f, f)  # line 7
    b += f * r  # line 8
    if t % K == 0:  # line 9
        C_inverse = np.linalg.inv(C)
        precision = alpha * np.eye(k) + beta * A.T @ C_inverse @ A
        S = np.linalg.inv(precision)  # line 10
        m = beta * S @ A.T @ C_inverse @ b  # line 11
        root = np.linalg.inv(np.linalg.cholesky((precision + precision.T) / 2)).T
        theta = m + root @ rng.standard_normal(k)  # line 12
        uncertainty.append(np.sqrt(np.diag(S)).mean())
    x = y
    if terminated or truncated:
        x = features(env.reset()[0])

# %%
# The library's agent has found the same weights.

agent.learn(STEPS)
difference = np.abs(agent.state.mean - m).max() / np.abs(m).max()
print(f"largest difference, relative to the largest weight: {difference:.0e}")

# %%

with style.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3), layout="constrained")
    left.semilogy(K * np.arange(1, len(uncertainty) + 1), uncertainty, color=style.BLUE)
    left.set(xlabel="transitions", ylabel="mean standard deviation of a weight")
    right.plot(m, agent.state.mean, "o", color=style.BLUE, markersize=4)
    right.set(xlabel="weights of these lines", ylabel="weights of the library")
