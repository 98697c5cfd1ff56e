"""Which actions are allowed: as environments say it, in ``info`` or in a Dict observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict

from rblspi.core.types import Allowed
from rblspi.environments.vectors import ACTION_MASK


def action_mask(
    space: gym.Space[Any], observation: Any, info: Mapping[str, Any] | None = None
) -> Any | None:
    """The mask in ``info["action_mask"]`` or in ``observation["action_mask"]``; None for neither.

    Of a batch of observations it has a row for each.
    """
    if info is not None and ACTION_MASK in info:
        return info[ACTION_MASK]
    if not (isinstance(space, Dict) and ACTION_MASK in space.spaces):
        return None
    if isinstance(observation, Mapping):
        return observation[ACTION_MASK]
    if isinstance(observation, list) and observation and isinstance(observation[0], Mapping):
        return [one[ACTION_MASK] for one in observation]
    return None


def checked_masks(masks: Any, actions: int, rows: int) -> Allowed:
    """Masks as rows of 0 and 1, shape (rows, actions), of which each allows something."""
    array = np.asarray(masks)
    if array.shape != (rows, actions) and (rows > 1 or array.shape != (actions,)):
        raise ValueError(
            f"action_masks of shape {array.shape} do not say which of {actions} actions are "
            f"allowed in {rows} observations"
        )
    flags = array.astype(np.bool_) if array.dtype.kind in "biuf" else None
    if flags is None or (flags != array).any():
        raise ValueError(f"action_masks={array.tolist()} must be true or false for every action")
    found: Allowed = flags.view(np.uint8).reshape(rows, actions)
    if not (found.any() if rows == 1 else found.any(axis=1).all()):
        raise ValueError(f"action_masks={found.tolist()} forbid every action of an observation")
    return found
