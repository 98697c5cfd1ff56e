"""Chain walk: states in a row, two noisy moves, and a reward for being at either end.

An action moves one state to the left or to the right; with probability ``failure`` it moves
the other way. A move beyond an end stays there. The reward is that of the state in which the
action is taken, and an episode never ends by itself.

References
----------
Lagoudakis and Parr (2003), Least-squares policy iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core.compiled import jit
from rblspi.core.types import Array, Matrix
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.rendering import Canvas, draw_row

LEFT, RIGHT = 0, 1


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start in any state."""
    state[0] = rng.integers(0, len(parameters) - 1)


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Move, or fail and move the other way; the reward is that of the state left."""
    failure, rewards = parameters[0], parameters[1:]
    here = int(state[0])
    move = 1 if action == RIGHT else -1
    if rng.random() < failure:
        move = -move
    state[0] = min(max(here + move, 0), len(rewards) - 1)
    return rewards[here], False, False


class ChainWalk(FiniteEnvironment):
    """Chain walk with one observation, and one reward, per state; action 0 is left, 1 is right.

    Parameters
    ----------
    states : int
    failure : float
        Probability of moving the other way.
    rewards : array-like, shape (states,), optional
        Reward for being in each state: by default 1 at both ends and 0 between them.
    """

    metadata = CompiledEnvironment.metadata | {"render_fps": 5}

    def __init__(
        self,
        states: int = 20,
        failure: float = 0.1,
        rewards: Sequence[float] | Array | None = None,
        render_mode: str | None = None,
    ) -> None:
        if states < 2:
            raise ValueError(f"states={states}: a chain has at least two")
        if not 0 <= failure <= 1:
            raise ValueError(f"failure={failure} is not a probability")
        if rewards is None:
            rewards = np.zeros(states)
            rewards[[0, -1]] = 1.0
        if len(rewards) != states:
            raise ValueError(f"rewards has {len(rewards)} entries for states={states}")
        super().__init__(
            Dynamics(reset, step, np.array([failure, *rewards], dtype=np.float64), state_size=1),
            gym.spaces.Discrete(states),
            gym.spaces.Discrete(2),
            render_mode,
        )

    @property
    def rewards(self) -> Array:
        """Reward for being in each state, shape (states,)."""
        return self.dynamics.parameters[1:].copy()

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'."""
        failure, states = self.dynamics.parameters[0], len(self.rewards)
        here = np.arange(states)
        to_left, to_right = np.zeros((2, states, states))
        to_left[here, np.maximum(here - 1, 0)] = 1.0
        to_right[here, np.minimum(here + 1, states - 1)] = 1.0
        return np.stack(
            [
                (1 - failure) * to_left + failure * to_right,
                (1 - failure) * to_right + failure * to_left,
            ]
        )

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions): the same for both actions."""
        return np.column_stack([self.rewards, self.rewards])

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells: rewarded ones are tinted, the present one holds a disc."""
        draw_row(canvas, self.rewards, int(self.state[0]))
