"""
A posterior that narrows with the data
======================================

BLSTD gives the values of a policy with their uncertainty. The chain walk is small enough to know
the true values, so one can see the posterior close in on them as the log grows. Errors of
neighbouring states go together: where the reward at one end has been seen too seldom, all values on
that side are too low.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import BLSTD, OneHot
from rblspi.environments.chain_walk import ChainWalk
from rblspi.plotting import style
from rblspi.rollout import collect

DISCOUNT, POLICY = 0.9, np.repeat([0, 1], 10)  # to the nearer end
chain, states = ChainWalk(), np.arange(20)
truth = chain.exact_action_values(POLICY, DISCOUNT)[states, POLICY]
(log,) = collect(chain, transitions=30_000, seed=0)

with style.style():
    figure, panels = plt.subplots(1, 3, figsize=(7.6, 2.8), sharey=True, layout="constrained")
    for axes, rows in zip(panels, (500, 3_000, 30_000), strict=True):
        blstd = BLSTD(OneHot(), 2, discount=DISCOUNT, observation_space=chain.observation_space)
        blstd.fit(log.rows(0, rows), lambda batch: POLICY[batch])
        mean, std = blstd.predict(states, POLICY, return_std=True)
        axes.plot(states, truth, color=style.BLACK, lw=1, label="true")
        axes.errorbar(states, mean, 2 * std, fmt="o", color=style.BLUE, ms=3, label="± 2 std")
        axes.set(xlabel="state", title=f"{rows:,} transitions")
        axes.set_xticks(states[::5])
    panels[0].set_ylabel("value")
    panels[0].legend()
