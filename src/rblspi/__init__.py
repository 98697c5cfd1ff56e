"""Least-squares policy iteration with a Bayesian posterior.

Importing this package registers the paper's domains with Gymnasium and loads nothing heavy:
the compiler is imported with the first name that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rblspi.environments import register as _register
from rblspi.registry import BASES as _BASES
from rblspi.registry import OURS as _OURS

if TYPE_CHECKING:
    from rblspi.core.compiled import jit as jit
    from rblspi.data import Transitions as Transitions
    from rblspi.environments.base import CompiledEnvironment as CompiledEnvironment
    from rblspi.environments.base import Dynamics as Dynamics
    from rblspi.features import Basis as Basis
    from rblspi.features import Features as Features
    from rblspi.features import Fourier as Fourier
    from rblspi.features import FunctionBasis as FunctionBasis
    from rblspi.features import Multilinear as Multilinear
    from rblspi.features import Network as Network
    from rblspi.features import Nystroem as Nystroem
    from rblspi.features import OneHot as OneHot
    from rblspi.features import Polynomial as Polynomial
    from rblspi.features import RandomFourier as RandomFourier
    from rblspi.features import RBFGrid as RBFGrid
    from rblspi.features import TileCoding as TileCoding
    from rblspi.features import TransformerBasis as TransformerBasis
    from rblspi.model.posterior import Posterior as Posterior
    from rblspi.model.statistics import Statistics as Statistics
    from rblspi.offline import BLSPI as BLSPI
    from rblspi.offline import BLSTD as BLSTD
    from rblspi.offline import FQI as FQI
    from rblspi.offline import GPTD as GPTD
    from rblspi.offline import LSPI as LSPI
    from rblspi.offline import LSTD as LSTD
    from rblspi.online.agent import Agent as Agent
    from rblspi.online.baselines.bdqn import BDQN as BDQN
    from rblspi.online.baselines.cover_tree import CTBRL as CTBRL
    from rblspi.online.baselines.lbrl import LBRL as LBRL
    from rblspi.online.baselines.lsdqn import LSDQN as LSDQN
    from rblspi.online.baselines.lsvi_ucb import LSVIUCB as LSVIUCB
    from rblspi.online.baselines.online_lspi import OnlineLSPI as OnlineLSPI
    from rblspi.online.baselines.psrl import PSRL as PSRL
    from rblspi.online.baselines.rlsvi import RLSVI as RLSVI
    from rblspi.online.baselines.rmax_lspi import RmaxLSPI as RmaxLSPI
    from rblspi.online.deep_q import DeepQ as DeepQ
    from rblspi.online.factory import agent as agent
    from rblspi.online.fitted_rmax import FittedRmax as FittedRmax
    from rblspi.online.opsrl import OPSRL as OPSRL
    from rblspi.online.optimistic_lsvi import OptimisticLSVI as OptimisticLSVI
    from rblspi.online.rblspi import RBLSPI as RBLSPI
    from rblspi.policies import ActionValues as ActionValues
    from rblspi.policies import LinearPolicy as LinearPolicy
    from rblspi.rollout import Calibration as Calibration
    from rblspi.rollout import Evaluation as Evaluation
    from rblspi.rollout import calibrate as calibrate
    from rblspi.rollout import evaluate as evaluate

__version__ = "0.1.0"

#: names by module; algorithms and bases are those of the registry
_MODULES = {
    "core.compiled": "jit",
    "data": "Transitions",
    "environments.base": "CompiledEnvironment Dynamics",
    "features": "Basis Features FunctionBasis TransformerBasis",
    "model.posterior": "Posterior",
    "model.statistics": "Statistics",
    "online.agent": "Agent",
    "online.factory": "agent",
    "policies": "ActionValues LinearPolicy",
    "rollout": "Calibration Evaluation calibrate evaluate",
}
_TARGETS = {
    name: f"rblspi.{module}" for module, names in _MODULES.items() for name in names.split()
}
for _target in [*_BASES.values(), *(record.target for record in _OURS)]:
    _TARGETS[_target.partition(":")[2]] = _target.partition(":")[0]

__all__ = sorted(_TARGETS)


def __getattr__(name: str) -> Any:
    if name not in _TARGETS:
        raise AttributeError(f"module 'rblspi' has no attribute {name!r}")
    return getattr(import_module(_TARGETS[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_TARGETS])


_register()
