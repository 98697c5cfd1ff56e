"""Records of all algorithms and bases, of this package and of other packages.

The command line, experiments, files, figures, the names of `rblspi` and the conformance suites all
read this registry. Another package adds an algorithm by an entry point that names an `Algorithm`::

    [project.entry-points."rblspi.algorithms"]
    my-algorithm = "my_package:ALGORITHM"
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

from rblspi.core.entry_points import installed

ENTRY_POINTS = "rblspi.algorithms"

#: arguments of constructors that are not settings, because they have their own options
_NOT_SETTINGS = (
    "env",
    "basis",
    "seed",
    "actions",
    "observation_space",
    "initial_policy",
    "columns",
)

#: names of arguments in other libraries, and advice on what to use here
_ELSEWHERE = {
    "gamma": "did you mean discount?",
    **dict.fromkeys(
        ("n_steps", "total_steps", "total_timesteps"),
        "--timesteps, or learn(total_timesteps), says how long it learns",
    ),
    **dict.fromkeys(("learning_rate", "lr"), "least squares need no learning rate"),
}

#: bases by their short names on the command line
BASES = {
    "rbf": "rblspi.features.rbf:RBFGrid",
    "polynomial": "rblspi.features.polynomial:Polynomial",
    "fourier": "rblspi.features.fourier:Fourier",
    "random": "rblspi.features.random_fourier:RandomFourier",
    "nystroem": "rblspi.features.nystroem:Nystroem",
    "tiles": "rblspi.features.tiles:TileCoding",
    "multilinear": "rblspi.features.multilinear:Multilinear",
    "onehot": "rblspi.features.one_hot:OneHot",
    "network": "rblspi.features.network:Network",
}

#: packages of the optional extras that algorithms need
EXTRAS = {"deep": ("jax", "optax")}

Class = TypeVar("Class")


def loaded(target: str) -> Any:
    """The class that ``module:Class`` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class Algorithm:
    """Facts about an algorithm that are available without importing it.

    Attributes
    ----------
    name : str
        Its name on the command line, in experiments and in files.
    target : str
        Its class, as ``module:Class``: an `Agent` if it learns online, else an `Estimator`.
    learns : {"online", "policy", "values"}
        A policy, online from an environment; a policy from logged transitions; or the values
        of a given policy from logged transitions.
    label : str
        Its name in figures; by default ``name``.
    baseline : bool
        Whether figures draw it as a baseline.
    needs : str
        The optional extra of this package that it needs, if it needs one.
    """

    name: str
    target: str
    learns: Literal["online", "policy", "values"]
    label: str = ""
    baseline: bool = False
    needs: str = ""

    @property
    def available(self) -> bool:
        """Whether the packages of the extra that it needs are installed."""
        return all(find_spec(module) is not None for module in EXTRAS.get(self.needs, ()))

    @property
    def online(self) -> bool:
        """Whether it learns in an environment, rather than from logged transitions."""
        return self.learns == "online"

    def load(self) -> Any:
        """Its class.

        Raises
        ------
        ImportError
            If a package that it needs is not installed.
        """
        if not self.available:
            raise ImportError(
                f"{self.name} needs {' and '.join(EXTRAS[self.needs])}: "
                f"pip install 'rblspi[{self.needs}]'"
            )
        return loaded(self.target)

    def settings(self) -> dict[str, Any]:
        """The settings that a user may change, with their defaults."""
        parameters = inspect.signature(self.load()).parameters.items()
        return {name: p.default for name, p in parameters if name not in _NOT_SETTINGS}

    def require_settings(self, names: Iterable[str]) -> None:
        """Raise a ValueError if one of these is not a setting of the algorithm."""
        known = self.settings()
        for name in names:
            if name in _NOT_SETTINGS:
                raise ValueError(f"{name} is not a setting: it has a place of its own")
            if name not in known:
                hint = _ELSEWHERE.get(name) or nearest(name, known)
                raise ValueError(f"{self.name} has no setting {name!r}: {hint}")


def _ours(name: str, module: str, label: str, baseline: bool = False, **more: str) -> Algorithm:
    """An algorithm of this package that learns online."""
    return Algorithm(name, f"rblspi.online.{module}", "online", label, baseline, **more)


OURS = (
    _ours("rblspi", "rblspi:RBLSPI", "RBLSPI"),
    _ours("opsrl", "opsrl:OPSRL", "OPSRL"),
    _ours("fitted-rmax", "fitted_rmax:FittedRmax", "Fitted R-max"),
    _ours("optimistic-lsvi", "optimistic_lsvi:OptimisticLSVI", "optimistic LSVI"),
    _ours("deep-q", "deep_q:DeepQ", "deep Q-learning", needs="deep"),
    _ours("online-lspi", "baselines.online_lspi:OnlineLSPI", "online LSPI", baseline=True),
    _ours("rlsvi", "baselines.rlsvi:RLSVI", "RLSVI"),
    _ours("lsvi-ucb", "baselines.lsvi_ucb:LSVIUCB", "LSVI-UCB"),
    _ours("rmax-lspi", "baselines.rmax_lspi:RmaxLSPI", "Rmax-LSPI"),
    _ours("lbrl", "baselines.lbrl:LBRL", "LBRL"),
    _ours("ctbrl", "baselines.cover_tree:CTBRL", "CTBRL"),
    _ours("bdqn", "baselines.bdqn:BDQN", "BDQN", needs="deep"),
    _ours("lsdqn", "baselines.lsdqn:LSDQN", "LS-DQN", needs="deep"),
    _ours("psrl", "baselines.psrl:PSRL", "PSRL"),
    Algorithm("lspi", "rblspi.offline.lspi:LSPI", "policy", "LSPI"),
    Algorithm("blspi", "rblspi.offline.lspi:BLSPI", "policy", "BLSPI"),
    Algorithm("fqi", "rblspi.offline.fqi:FQI", "policy", "FQI"),
    Algorithm("lstd", "rblspi.offline.lstd:LSTD", "values", "LSTD"),
    Algorithm("blstd", "rblspi.offline.lstd:BLSTD", "values", "BLSTD"),
    Algorithm("gptd", "rblspi.offline.gptd:GPTD", "values", "GPTD"),
)


@cache
def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name; a name of ours cannot be taken by another package.

    An entry point that cannot be loaded is left out, with a warning that names its package.
    """
    found = {algorithm.name: algorithm for algorithm in OURS}
    for record in installed(ENTRY_POINTS, Algorithm, "algorithm").values():
        found.setdefault(record.name, record)
    return found


def algorithm(name: str) -> Algorithm:
    """The algorithm of this name.

    Raises
    ------
    ValueError
        If there is none; the message suggests the nearest.
    """
    if name not in algorithms():
        raise ValueError(f"no algorithm is called {name!r}: {nearest(name, algorithms())}")
    return algorithms()[name]


def name_of(kind: type[Any]) -> str:
    """The registered name of a class, or its own name where it is not registered."""
    for found in algorithms().values():
        module, _, name = found.target.partition(":")
        if getattr(sys.modules.get(module), name, None) is kind:
            return found.name
    return kind.__name__


def class_of(name: str, kind: type[Class]) -> type[Class]:
    """The class with this `name_of`: ``kind``, or a registered class derived from it."""
    if name == name_of(kind):
        return kind
    found: Any = algorithms()[name].load() if name in algorithms() else None
    if found is not None and issubclass(found, kind):
        return found  # type: ignore[no-any-return]
    if found is not None:
        raise ValueError(f"it holds {name}, not {name_of(kind)}: load it with Agent.load")
    raise ValueError(f"it holds {name[:60]!r}, an algorithm that is not registered")


def nearest(name: str, known: Iterable[str]) -> str:
    """A half-sentence that suggests names like this one."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(names)}"
