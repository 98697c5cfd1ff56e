"""Schedules: whether a periodic event is due at this step."""

from __future__ import annotations

from rblspi.core.compiled import jit_borrowing


@jit_borrowing
def is_due(every: int, transitions: int, ended: bool) -> bool:
    """Every so many transitions of the whole run; 0: at the end of every episode."""
    return ended if every == 0 else transitions % every == 0
