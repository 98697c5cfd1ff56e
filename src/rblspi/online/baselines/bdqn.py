"""Bayesian deep Q-networks: Thompson sampling over the last layer of a network.

Beside Algorithm 1 of Azizzadenesheli, Brunskill and Anandkumar, with the names of `DeepQ`:

    1   for every block of 32 steps:
    2       for every step: a = argmax_a phi(s)'theta_a                         `act`
    3       learn features by double Q-learning                                 `DeepQ`
    4       every 1000 steps: take the features of the averaged weights, and
            regress r + gamma max_a' Q(s', a') on them                          `regress_network`
    5       then, and after every episode: draw theta                           `_renew`
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.compiled import jit_inlined
from rblspi.core.types import Array, Integers, Matrix, Vector
from rblspi.model.double_q import Learner
from rblspi.online.deep_q import TRANSITIONS, DeepQ, act
from rblspi.online.last_layer import LastLayer, is_due, regress_network
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import Transition, ends_episode

#: place in `State.counters`: whether an episode has ended since the last draw
ENDED = 2


class State(NamedTuple):
    """What the agent carries from step to step, beside its memory."""

    weights: Vector  # of the present draw, in units of the rewards  (k,)
    epsilon: Vector  # 1 before the first regression, then 0          (1,)
    unit: Vector  # as for `DeepQ`        (1,)
    counters: Integers  # as for `DeepQ`, and ENDED  (3,)
    learner: Learner
    mean: Matrix  # of the posterior      (actions, n)
    factors: Array  # see `LastLayer`     (actions, n, n)
    noise_std: Vector  #                  (1,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        return {"counters": (0, [LARGEST_COUNT, LARGEST_COUNT, 1])}


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Count the transition, and note the end of an episode."""
    agent.counters[TRANSITIONS] += 1
    if ends_episode(transition):
        agent.counters[ENDED] = 1


class BDQN(DeepQ):
    """Explores by draws from the posterior over the last layer of a network.

    Parameters
    ----------
    env, basis, discount, seed
        As for `DeepQ`.

    Notes
    -----
    The prior of the last layer is around the weights that the network has learnt there, and weighs
    as much as one transition along every feature.

    References
    ----------
    K. Azizzadenesheli, E. Brunskill and A. Anandkumar (2018). Efficient exploration through
    Bayesian deep Q-networks. Information Theory and Applications Workshop.
    """

    functions = AgentFunctions(act, observe)
    state: State  # type: ignore[assignment]

    def _initial_state(self) -> State:  # type: ignore[override]
        start, n = super()._initial_state(), self.features.size
        factors = np.tile(np.eye(n), (self.actions, 1, 1))
        own = start._asdict() | {"counters": np.zeros(3, np.int64)}
        return State(
            **own, mean=np.zeros((self.actions, n)), factors=factors, noise_std=np.zeros(1)
        )

    def _renew(self, rescaled: bool) -> None:
        """Lines 4 and 5."""
        counters, state = self.state.counters, self.state
        due = is_due(self) or rescaled
        if due:
            self._act_by_average()
            state.mean[...], state.factors[...], state.noise_std[0] = regress_network(self)
        if due or counters[ENDED]:
            drawn = LastLayer(state.mean, state.factors, float(state.noise_std[0])).draw(self.rng)
            state.weights[:] = drawn.ravel()
            state.epsilon[0] = 0.0
            counters[ENDED] = 0

    def _weights(self, explore: bool) -> Vector:
        return self.state.weights if explore else self.state.mean.ravel()

    def diagnostics(self) -> dict[str, float]:
        """The standard deviation of what the regression leaves."""
        return {"noise": float(self.state.noise_std[0])}
