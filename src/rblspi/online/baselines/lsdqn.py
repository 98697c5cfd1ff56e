"""Least-squares deep Q-networks: the last layer is refitted by least squares now and then.

Beside Algorithm 1 of Levine, Zahavy, Mankowitz, Tamar and Mannor, with the names of `DeepQ`:

    1   learn by double Q-learning, and act epsilon-greedily                    `DeepQ`
    2   every 1000 steps: regress r + gamma max_a' Q(s', a') on the features
        of the averaged weights, around the last layer of these weights         `regress_network`
    3       the last layer of the network is the solution                       `_renew`
"""

from __future__ import annotations

import numpy as np

from rblspi.online.deep_q import DeepQ
from rblspi.online.last_layer import is_due, regress_network


class LSDQN(DeepQ):
    """Deep Q-learning with a last layer by least squares, regularised towards the network's.

    Parameters
    ----------
    env, basis, discount, seed
        As for `DeepQ`.

    Notes
    -----
    The network's last layer weighs as much as one transition along every feature.

    References
    ----------
    N. Levine, T. Zahavy, D. J. Mankowitz, A. Tamar and S. Mannor (2017). Shallow updates for deep
    reinforcement learning. NIPS.
    """

    def _renew(self, rescaled: bool) -> None:
        super()._renew(rescaled)
        if is_due(self):  # line 2
            found = regress_network(self).mean
            last = np.concatenate([found[:, -1], found[:, :-1].T.ravel()]) / self.state.unit[0]
            for weights in (self.state.learner.latest, self.state.learner.average):
                weights[-len(last) :] = last  # line 3
            self._act_by_average()
