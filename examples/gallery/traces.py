"""
Traces: from LSTD to regression on returns
==========================================

``trace_decay``, the lambda of TD(lambda), decides how far least squares look ahead. We see what it
does on Boyan's chain, whose values are known, and whether the posterior of ``BLSTD`` stays true.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import BLSTD, GPTD, LSTD, Multilinear, OneHot, Polynomial
from rblspi.data import Transitions
from rblspi.plotting import style

LAMBDAS = (0.0, 0.4, 0.8, 0.9, 1.0)

# %%
# Boyan's chain leads from state 12 to state 0, by one or two states at a time. A step costs 3, and
# the last one, from state 1, costs 2: state s has the value -2 s. Linear interpolation between the
# states 0, 4, 8 and 12 can express that. A quadratic function of s alone cannot.


def boyan(episodes, rng):
    """Logged transitions of the chain."""
    rows = []
    for _ in range(episodes):
        state = 12
        while state > 0:
            after = max(state - rng.integers(1, 3), 0) if state > 1 else 0
            rows.append((state, 0, -3.0 if state > 1 else -2.0, after, after == 0))
            state = after
    return Transitions.from_arrays(*map(np.array, zip(*rows, strict=True)))


def square(state):
    """A basis that cannot express the values."""
    return np.array([1.0, float(state) ** 2])


states = np.arange(1, 13)
logs = [boyan(100, np.random.default_rng(seed)) for seed in range(20)]
for name, basis in {"interpolation": Multilinear(4, low=0, high=12), "1, s^2": square}.items():
    errors = []
    for decay in LAMBDAS:
        fits = [LSTD(basis, discount=1.0, trace_decay=decay).fit(log) for log in logs]
        found = np.array([fit.predict(states.astype(float)) for fit in fits])
        errors.append(np.sqrt(np.square(found + 2.0 * states).mean()))
    print(f"{name:14}", *(f"lambda {d}: {e:.3f}" for d, e in zip(LAMBDAS, errors, strict=True)))

# %%
# In the good basis, lambda hardly matters. In the poor one, the error falls with lambda.
#
# Random problems of twelve states with noisy rewards show the posteriors. If a table can express
# the values, 95% intervals of ``BLSTD`` should contain 95% of them for every lambda. ``GPTD`` takes
# returns for independent, which those of neighbouring rows are not.


def random_problem(rng, states=12, ends=0.05, discount=0.95):
    """A log of 40 episodes, and the true values."""
    onward = np.zeros((states, states))
    for row in onward:
        row[rng.choice(states, 3, replace=False)] = rng.dirichlet(np.ones(3))
    means = rng.standard_normal(states)
    rows = []
    for _ in range(40):
        state, ended = rng.integers(states), False
        while not ended:
            after, ended = rng.choice(states, p=onward[state]), rng.random() < ends
            rows.append((state, 0, rng.normal(means[state]), after, ended))
            state = after
    values = np.linalg.solve(np.eye(states) - discount * (1 - ends) * onward, means)
    return Transitions.from_arrays(*map(np.array, zip(*rows, strict=True))), values


def contained(estimator, log, values):
    """The share of the true values that are in their 95% intervals."""
    mean, std = estimator.fit(log).predict(np.arange(12), return_std=True)
    return np.mean(np.abs(mean - values) < 1.96 * std)


problems = [random_problem(np.random.default_rng(seed)) for seed in range(60)]
kinds = {
    "BLSTD, a table": lambda decay: BLSTD(OneHot(), discount=0.95, trace_decay=decay),
    "BLSTD, cubic": lambda decay: BLSTD(
        Polynomial(3, low=0, high=11), discount=0.95, trace_decay=decay
    ),
    "GPTD, a table": lambda decay: GPTD(OneHot(), discount=0.95, trace_decay=decay),
}
with style.style():
    figure, axes = plt.subplots()
    for name, made in kinds.items():
        shares = [np.mean([contained(made(d), *one) for one in problems]) for d in LAMBDAS]
        print(f"{name:15}", *(f"lambda {d}: {s:.2f}" for d, s in zip(LAMBDAS, shares, strict=True)))
        axes.plot(LAMBDAS, shares, marker="o", label=name)
    axes.axhline(0.95, linestyle=":")
    axes.set(xlabel="lambda", ylabel="values in their 95% intervals", ylim=(0.0, 1.0))
    axes.legend()
