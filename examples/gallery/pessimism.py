"""
A log with gaps, and a policy that avoids them
==============================================

A log covers the left part of the chain only. A policy from it may well believe in riches on the
right, where nobody has been. Pessimism lowers the value of an action by two standard deviations, so
that the policy stays where the data are.
"""

import matplotlib.pyplot as plt
import numpy as np

from rblspi import BLSPI, OneHot
from rblspi.environments.chain_walk import ChainWalk
from rblspi.offline import coverage
from rblspi.plotting import style
from rblspi.rollout import collect

chain, states = ChainWalk(), np.arange(20)
(log,) = collect(chain, transitions=4_000, seed=0)
known = log.observations < 12
left = log.select(known)
print(f"{left.size:,} transitions, none from the states 12 to 19")

# %%

space = chain.observation_space
fits = {
    c: BLSPI(OneHot(), 2, discount=0.9, pessimism=c, observation_space=space).fit(left)
    for c in (0.0, 2.0)
}
for c, blspi in fits.items():
    print(f"pessimism {c}:", "".join("<>"[a] for a in blspi.act(states)), coverage(blspi, states))

# %%
# An arrow is the action in a state, from 0 on the left to 19 on the right. Without pessimism the
# policy walks into the unknown from the state 7 on. With pessimism it goes left wherever there are
# data. Where there are none, neither of them knows what it does.
#
# Values of both actions with their standard deviations: narrow on the left, as wide as the prior
# where there are no data.

mean, std = fits[0.0].posterior_.predict(fits[0.0].features_(states))
with style.style():
    figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
    axes.axvspan(11.5, 19.5, color="#EEEEEE", label="no data")
    for action, (name, colour) in enumerate((("left", style.BLUE), ("right", style.ORANGE))):
        where = states + 0.15 * (2 * action - 1)
        axes.errorbar(where, mean[:, action], std[:, action], fmt="o", color=colour, label=name)
    axes.set(xlabel="state", ylabel="action value ± standard deviation", xlim=(-0.5, 19.5))
    axes.set_xticks(states[::3])
    axes.legend(loc="upper center")
