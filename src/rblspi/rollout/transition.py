"""One transition, as the loop passes it to an agent, and its meaning for the agent."""

from __future__ import annotations

from typing import NamedTuple

from rblspi.core.compiled import jit_inlined
from rblspi.core.types import Allowed, Vector

#: how a transition leaves its episode: termination cuts the future off, truncation does not
CONTINUES, TERMINATED, TRUNCATED = range(3)


class Transition(NamedTuple):
    """A step from the features of one observation to the features of the next."""

    x: Vector  # phi(s)                           (n,)
    action: int
    reward: float
    y: Vector  # phi(s')                          (n,)
    next_allowed: Allowed  # which actions in s'  (actions,)
    end: int  # CONTINUES, TERMINATED or TRUNCATED


@jit_inlined
def ends_episode(transition: Transition) -> bool:
    """Whether the next action belongs to another episode."""
    return transition.end != CONTINUES


@jit_inlined
def is_terminal(transition: Transition, limit_ends: bool = False) -> bool:
    """Whether the next state has no value; with ``limit_ends``, also after truncation."""
    return transition.end == TERMINATED or (limit_ends and transition.end == TRUNCATED)


@jit_inlined
def is_due(transition: Transition, every: int, transitions: int) -> bool:
    """Whether a periodic event is due: every so many transitions; if 0, after an episode."""
    return ends_episode(transition) if every == 0 else transitions % every == 0
