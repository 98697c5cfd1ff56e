"""Agents that count outcomes and plan in models of them."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.environments.lookup import EnvironmentLike, make
from rblspi.features import BasisLike, OneHot, as_basis
from rblspi.features.bounds import observation_shape, states_of
from rblspi.online.agent import Agent, Cost
from rblspi.online.table_planning import PRECISION, plan

#: transitions that are kept: 8 MB, because intervals in a table are as narrow as these are many
MOST_REMEMBERED = 100_000


class TableAgent(Agent):
    """An agent that counts outcomes and plans in models of them.

    Its state has a ``table``, into whose workspace it writes models, and ``sampled`` action values.
    """

    most_remembered = MOST_REMEMBERED

    def __init__(
        self,
        env: EnvironmentLike,
        basis: BasisLike | None = None,
        *,
        discount: float = 0.99,
        seed: int | None = None,
    ) -> None:
        environment, name = make(env), type(self).__name__
        if states_of(environment.observation_space) is None:
            raise TypeError(
                f"{name} counts visits of states and needs a Discrete observation space, or one of "
                f"several discrete parts, not {environment.observation_space}: use FittedRmax "
                "or OptimisticLSVI"
            )
        if basis is not None and as_basis(basis) not in (OneHot(), OneHot(joint=True)):
            raise TypeError(f"{name} learns a table and takes no basis but OneHot(), not {basis}")
        if check.fraction("discount", discount) == 1.0:
            raise ValueError(
                f"discount=1: a sampled model may go on for ever, and {name} plans in it with a "
                "discount below 1, such as 0.99"
            )
        self._best: tuple[int, Vector] = (-1, np.empty(0))  # visits behind it, action values
        single = observation_shape(environment.observation_space) == ()
        super().__init__(environment, OneHot(joint=not single), discount=discount, seed=seed)

    @abstractmethod
    def _make_best_model(self) -> None:
        """Write the best estimate of the model into the workspace."""

    def _weights(self, explore: bool) -> Vector:
        sampled: Vector = self.state.sampled
        return sampled if explore else self._best_estimate()

    def _best_estimate(self) -> Vector:
        """Action values in the best estimate of the model."""
        visits = int(self.state.table.visits.sum())
        if self._best[0] != visits:
            values = np.zeros_like(self.state.sampled)
            self._make_best_model()
            plan(self.state.table, values)
            self.state.table.workspace_plan.ready[0] = 0  # for the plan that the agent acts by
            self._best = (visits, values)
        return self._best[1]

    def cost(self) -> Cost:
        """About what learning takes, if a model is planned in every hundred steps."""
        usual = super().cost()
        sweeps = math.log(1e-2 * PRECISION) / math.log(max(self.discount, 0.01))
        return usual._replace(seconds_a_step=1e-8 * sweeps * usual.weights / 100, advice="")

    def diagnostics(self) -> dict[str, float]:
        """The share of states and actions that were tried."""
        return {"tried": float(np.mean(self.state.table.visits > 0))}
