"""Least-squares policy iteration with a Bayesian posterior.

Importing this package registers the paper's domains with Gymnasium and loads nothing heavy:
the compiler comes with the first name that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rblspi.environments import register as _register

if TYPE_CHECKING:
    from rblspi.agents import RBLSPI, ActionValues, Agent, OnlineLSPI
    from rblspi.agents.evaluation import Evaluation, evaluate
    from rblspi.compiled import jit
    from rblspi.environments.base import CompiledEnvironment, Dynamics
    from rblspi.estimators import BLSPI, BLSTD, LSPI, LSTD
    from rblspi.features import (
        Basis,
        Features,
        Fourier,
        FunctionBasis,
        OneHot,
        Polynomial,
        RBFGrid,
        TileCoding,
        TransformerBasis,
    )
    from rblspi.posterior import Posterior
    from rblspi.statistics import Statistics
    from rblspi.transitions import Transitions

__version__ = "0.1.0"

_HOMES = {
    "agents": ("RBLSPI", "ActionValues", "Agent", "OnlineLSPI"),
    "agents.evaluation": ("Evaluation", "evaluate"),
    "compiled": ("jit",),
    "environments.base": ("CompiledEnvironment", "Dynamics"),
    "estimators": ("BLSPI", "BLSTD", "LSPI", "LSTD"),
    "features": (
        "Basis",
        "Features",
        "Fourier",
        "FunctionBasis",
        "OneHot",
        "Polynomial",
        "RBFGrid",
        "TileCoding",
        "TransformerBasis",
    ),
    "posterior": ("Posterior",),
    "statistics": ("Statistics",),
    "transitions": ("Transitions",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BLSPI",
    "BLSTD",
    "LSPI",
    "LSTD",
    "RBLSPI",
    "ActionValues",
    "Agent",
    "Basis",
    "CompiledEnvironment",
    "Dynamics",
    "Evaluation",
    "Features",
    "Fourier",
    "FunctionBasis",
    "OneHot",
    "OnlineLSPI",
    "Polynomial",
    "Posterior",
    "RBFGrid",
    "Statistics",
    "TileCoding",
    "TransformerBasis",
    "Transitions",
    "evaluate",
    "jit",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rblspi' has no attribute {name!r}")
    return getattr(import_module(f"rblspi.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


_register()
