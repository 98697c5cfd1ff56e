"""N-chain: a long walk to the right, with a small reward for giving up at once.

N states in a row, and two actions that move one state to the left or to the right without fail; a
move beyond an end stays there. The reward is 0.001 for going left in the leftmost state and 1 for
going right in the rightmost. Episodes start in the second state from the left.

An agent sees N + 9 states in an episode and so makes N + 8 steps. Always going right reaches the
rightmost state in N - 2 of them and has the return 10; such an episode is optimal. An agent that
acts at random needs about 2^N episodes to see one. The end of an episode is a time limit:
it is truncated and never terminates, because the position does not tell the time that is left.

References
----------
Osband, Blundell, Pritzel and Van Roy (2016), Deep exploration via bootstrapped DQN.
"""

from __future__ import annotations

import numpy as np

from rblspi.core import check
from rblspi.environments.rendering import Canvas
from rblspi.environments.row import LEFT, RIGHT, Row, straight

#: steps of an episode beyond the number of states
MORE_STEPS = 8


class NChain(Row):
    """N-chain; action 0 goes left, 1 right.

    Parameters
    ----------
    length : int
        N, the number of states.
    left_reward, right_reward : float
        For going left in the leftmost state, and for going right in the rightmost.
    """

    def __init__(
        self,
        length: int = 100,
        left_reward: float = 0.001,
        right_reward: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.length = check.count("length", length, least=3)
        self.right_reward = right_reward
        rewards = np.zeros((self.length, 2))
        rewards[0, LEFT], rewards[-1, RIGHT] = left_reward, right_reward
        limit = self.length + MORE_STEPS
        super().__init__(rewards, *straight(self.length), 1, limit, render_mode)

    def optimal_return(self) -> float:
        """The return of an episode that always goes right."""
        return (MORE_STEPS + 2) * float(self.right_reward)

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells with the rewards of the ends, and the number of steps so far."""
        super().draw(canvas)
        steps = f"step {self.state[1]:.0f} of {self.length + MORE_STEPS}"
        canvas.text((canvas.left, canvas.top), f"  {steps}", 15, ha="left", va="top")
