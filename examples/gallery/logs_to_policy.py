"""
From a log to a policy
======================

A table of transitions becomes a policy. The log holds random pushes of a pendulum, which falls
after a few steps. The policy keeps it up.
"""

import matplotlib.pyplot as plt
import pandas as pd

from rblspi import FQI, evaluate
from rblspi.data import Columns, read_log
from rblspi.plotting import maps, style
from rblspi.rollout import collect

PENDULUM = "rblspi/InvertedPendulum-v0"
(log,) = collect(PENDULUM, episodes=600, seed=1)
table = pd.DataFrame(log.observations, columns=["angle", "speed"])
table[["angle_next", "speed_next"]] = log.next_observations
table["push"], table["reward"], table["fallen"] = log.actions, log.rewards, log.terminated
table.head()

# %%
# ``Columns`` says what the columns of the table are. There is no column that tells where an
# episode was cut short, so the order of the rows does.

columns = Columns(
    state=("angle", "speed"),
    next_state=("angle_next", "speed_next"),
    action="push",
    terminated="fallen",
)
fqi = FQI(discount=0.95).fit(read_log(table, columns))
print(fqi.basis_)
print(f"{fqi.n_iter_} iterations,", "converged" if fqi.converged_ else "did not converge")

# %%
# The policy acts on its own. With an environment it can be tried out.

policy = fqi.policy(PENDULUM)
print("balances for", evaluate(policy, episodes=3).mean_length, "steps of 3000")

# %%
# Most of the log is about falling, and little of it about standing. The policy pushes against the
# direction in which the pendulum is about to fall.

computed = maps.compute(policy, resolution=121)
with style.style():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2), layout="constrained")
    left.plot(*log.observations.T, ".", color=style.BLUE, markersize=1, alpha=0.4)
    left.set(title="the log")
    grid = computed.slices[0]
    right.contourf(*grid.axes, grid.policy, levels=[-0.5, 0.5, 1.5, 2.5], cmap="coolwarm")
    right.set(title="the policy: left (blue), none, right (red)")
    for axes in (left, right):
        axes.set(xlabel="angle", ylabel="angular velocity", xlim=(-1.2, 1.2), ylim=(-3, 3))
