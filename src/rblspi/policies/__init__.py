"""Policies: how actions are chosen, and what the actions of a policy are worth."""

from rblspi.policies.choice import EpsilonGreedy, Greedy, Pessimistic
from rblspi.policies.given import PolicyFunction
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.values import ActionValues, Draws

__all__ = [
    "ActionValues",
    "Draws",
    "EpsilonGreedy",
    "Greedy",
    "LinearPolicy",
    "Pessimistic",
    "PolicyFunction",
]
