"""When something happens that happens now and then."""

from __future__ import annotations

from rblspi.compiled import jit_borrowing


@jit_borrowing
def is_due(every: int, transitions: int, ended: bool) -> bool:
    """Every so many transitions of the whole run; 0: at the end of every episode."""
    return ended if every == 0 else transitions % every == 0
