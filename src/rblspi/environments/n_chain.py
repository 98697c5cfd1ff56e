"""N-chain: a long walk to the right, with a small reward for giving up at once.

N states in a row, and two actions that move one state to the left or to the right without fail; a
move beyond an end stays there. The reward is 0.001 for going left in the leftmost state and 1 for
going right in the rightmost. Episodes start in the second state from the left.

An agent sees N + 9 states in an episode and so makes N + 8 steps. Always going right reaches the
rightmost state in N - 2 of them and has the return 10; such an episode is optimal. An agent that
acts at random needs about 2^N episodes to see one. The end of an episode is a time limit:
it is truncated and never terminates, because the position says nothing of the time that is left.

References
----------
Osband, Blundell, Pritzel and Van Roy (2016), Deep exploration via bootstrapped DQN.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit
from rblspi.core.types import Array, Matrix
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.rendering import INK, Canvas, draw_row

LEFT, RIGHT = 0, 1
#: steps of an episode beyond the number of states
MORE_STEPS = 8


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start in the second state from the left; the second number of the state counts steps."""
    state[0] = 1.0
    state[1] = 0.0


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Move; the reward is that of the state left."""
    last, here = int(parameters[0]) - 1, int(state[0])
    reward = 0.0
    if action == LEFT and here == 0:
        reward = parameters[1]
    elif action == RIGHT and here == last:
        reward = parameters[2]
    state[0] = min(max(here + (1 if action == RIGHT else -1), 0), last)
    state[1] += 1.0
    return reward, False, state[1] >= last + 1 + MORE_STEPS


class NChain(FiniteEnvironment):
    """N-chain; action 0 goes left, 1 right.

    Parameters
    ----------
    length : int
        N, the number of states.
    left_reward, right_reward : float
        For going left in the leftmost state, and for going right in the rightmost.
    """

    metadata = CompiledEnvironment.metadata | {"render_fps": 5}

    def __init__(
        self,
        length: int = 100,
        left_reward: float = 0.001,
        right_reward: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.length = check.count("length", length, least=3)
        super().__init__(
            Dynamics(reset, step, np.array([length, left_reward, right_reward]), state_size=2),
            gym.spaces.Discrete(self.length),
            gym.spaces.Discrete(2),
            render_mode,
        )

    def optimal_return(self) -> float:
        """The return of an episode that always goes right."""
        return (MORE_STEPS + 2) * float(self.dynamics.parameters[2])

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'."""
        here = np.arange(self.length)
        transitions = np.zeros((2, self.length, self.length))
        transitions[LEFT, here, np.maximum(here - 1, 0)] = 1.0
        transitions[RIGHT, here, np.minimum(here + 1, self.length - 1)] = 1.0
        return transitions

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        rewards = np.zeros((self.length, 2))
        rewards[0, LEFT], rewards[-1, RIGHT] = self.dynamics.parameters[1:]
        return rewards

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells with the rewards of the ends, and the number of steps so far."""
        draw_row(canvas, self.expected_rewards().max(axis=1), int(self.state[0]))
        steps = f"step {self.state[1]:.0f} of {self.length + MORE_STEPS}"
        canvas.text((canvas.left, canvas.top), f"  {steps}", 15, INK, anchor="la")
