"""Cover-tree Bayesian reinforcement learning: sample piecewise linear dynamics, and plan in them.

The algorithm of Tziortziotis, Dimitrakakis and Blekas is that of `LBRL`, with another model in its
lines 2 and 3: for every action a tree of linear models, see `rblspi.model.tree_mixture`. A draw of
the tree and of its models is piecewise linear. Where data are few, it has few parts.

The inputs of the models are (1, s), because the tree takes the place of a basis. The paper plans
by LSTD on trajectories that it simulates in the draw; here plans are those of `LBRL`.
"""

from __future__ import annotations

from rblspi.core import check
from rblspi.core.settings import Setting
from rblspi.core.types import Matrix
from rblspi.data.transitions import Transitions
from rblspi.model.tree_mixture import TreeMixture
from rblspi.online.baselines.lbrl import LBRL


class CTBRL(LBRL):
    """Explores by planning in sampled piecewise linear models; for continuous observations.

    Parameters
    ----------
    depth : int
        Levels of the cover tree. The root covers the box of the observations, and a node of every
        further level half the distance: with 8, the smallest parts are 1% of the box.
    env, basis, discount, seed, noise_std, prior_std
        As for `LBRL`, but the features serve the planned values only.

    References
    ----------
    Tziortziotis, Dimitrakakis and Blekas, Cover tree Bayesian reinforcement learning, Journal of
    Machine Learning Research 15, 2014.
    """

    depth = Setting(8, check.count)

    def _posterior(self, x: Matrix, y: Matrix, penalty: float, variance: float) -> TreeMixture:
        return TreeMixture.of(x, y, penalty, variance, self.depth)

    def _inputs(self, log: Transitions, states: Matrix) -> Matrix:
        """(1, s)."""
        return self._linear_inputs(log, states)
