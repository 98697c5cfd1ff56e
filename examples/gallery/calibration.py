"""
Are the intervals true?
=======================

An agent states what its actions are worth, with a standard deviation. ``calibrate`` compares that
with what is true: on the mountain car, with simulated returns.
"""

from rblspi import FittedRmax
from rblspi.plotting import calibration, style
from rblspi.rollout import calibrate

agent = FittedRmax("rblspi/MountainCar-v0", seed=0).learn(10_000)
result = calibrate(agent, states=20, rollouts=4)
print(result)

# %%
# On the left, every point is a state and an action. If the agent were perfect, points would be on
# the dashed line; if its intervals are true, 95% of them reach it. On the right is the share of
# true values inside the intervals, for intervals of every probability. Above the dashed line the
# agent is less sure than it could be, below it is too sure.

with style.style():
    figure = calibration.draw(result)
