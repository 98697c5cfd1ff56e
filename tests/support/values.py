"""What the actions of any function of the observations are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.offline.linear_draws import draws_of_weights
from rblspi.offline.problem import Problem
from rblspi.policies import LinearPolicy


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Doing(LinearPolicy):
    """A policy that does what a function says."""

    function: Callable[..., Any]

    def allowed_actions(self, observations, allowed):
        return self.function(observations)


def any_policy(basis, space, **more):
    """A policy of three actions, counted from 2, with random weights."""
    features = basis.build(space)
    return LinearPolicy(
        basis=basis,
        features=features,
        weights=np.random.default_rng(0).standard_normal(3 * features.size),
        observation_space=space,
        action_space=gym.spaces.Discrete(3, start=2),
        **more,
    )


def values_by_log(log, function, basis, actions, discount, space=None):
    """What the actions of a function are worth, by a log."""
    problem = Problem.of(basis, actions, discount, space, [log])
    policy = Doing(
        basis=basis,
        features=problem.features,
        weights=np.zeros(actions * problem.features.size),
        observation_space=problem.space,
        action_space=gym.spaces.Discrete(actions),
        discount=discount,
        function=function,
    )
    return replace(policy, draws=draws_of_weights(log, policy))
