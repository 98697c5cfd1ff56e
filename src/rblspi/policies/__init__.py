"""Policies: how actions are chosen, and `LinearPolicy`, which agents and estimators produce."""

from rblspi.policies.choice import EpsilonGreedy, Greedy, Pessimistic
from rblspi.policies.given import PolicyFunction
from rblspi.policies.linear import ActionValues, LinearPolicy

__all__ = [
    "ActionValues",
    "EpsilonGreedy",
    "Greedy",
    "LinearPolicy",
    "Pessimistic",
    "PolicyFunction",
]
