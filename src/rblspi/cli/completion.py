"""What the Tab key suggests: environments, algorithms, bases and figures by their first letters.

``rblspi --install-completion`` sets it up for the shell that is running.
"""

from __future__ import annotations

from collections.abc import Iterable


def environments(incomplete: str) -> list[str]:
    """Environments that are installed."""
    import gymnasium as gym

    return _beginning(incomplete, gym.registry)


def online_algorithms(incomplete: str) -> list[str]:
    """Algorithms of ``rblspi train``."""
    from rblspi.registry import algorithms

    return _beginning(incomplete, (a.name for a in algorithms().values() if a.online))


def offline_algorithms(incomplete: str) -> list[str]:
    """Algorithms of ``rblspi fit``."""
    from rblspi.registry import algorithms

    return _beginning(incomplete, (a.name for a in algorithms().values() if not a.online))


def bases(incomplete: str) -> list[str]:
    """Names of bases, which take their arguments in parentheses."""
    from rblspi.features import BASES

    return _beginning(incomplete, BASES)


def figures(incomplete: str) -> list[str]:
    """Figures of the paper."""
    from rblspi.reproduction.figures import FIGURES

    return _beginning(incomplete, FIGURES)


def readings(incomplete: str) -> list[str]:
    """Readings of what the paper leaves open."""
    from rblspi.reproduction.readings import SOURCES, name_of, one_at_a_time

    single = (name_of(reading) for reading in one_at_a_time() if reading)
    return _beginning(incomplete, (*single, *SOURCES))


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
