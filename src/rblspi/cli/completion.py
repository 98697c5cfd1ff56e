"""What the Tab key suggests: environments, algorithms and bases by their first letters.

``rblspi --install-completion`` sets it up for the shell that is running.
"""

from __future__ import annotations

from collections.abc import Iterable


def environments(incomplete: str) -> list[str]:
    """Environments that are installed."""
    import gymnasium as gym

    return beginning(incomplete, gym.registry)


def online_algorithms(incomplete: str) -> list[str]:
    """Algorithms of ``rblspi train``."""
    from rblspi.registry import algorithms

    return beginning(incomplete, (a.name for a in algorithms().values() if a.online))


def offline_algorithms(incomplete: str) -> list[str]:
    """Algorithms of ``rblspi fit``."""
    from rblspi.registry import algorithms

    return beginning(incomplete, (a.name for a in algorithms().values() if not a.online))


def bases(incomplete: str) -> list[str]:
    """Names of bases, which take their arguments in parentheses."""
    from rblspi.features import BASES

    return beginning(incomplete, BASES)


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """The names that begin with what has been typed, in alphabetical order."""
    return sorted(name for name in names if name.startswith(incomplete))
