"""Estimators of values and policies from logged transitions, in scikit-learn's shape."""

from rblspi.estimators.base import NotFittedError
from rblspi.estimators.blspi import BLSPI
from rblspi.estimators.blstd import BLSTD
from rblspi.estimators.lspi import LSPI
from rblspi.estimators.lstd import LSTD
from rblspi.estimators.policy_iteration import ConvergenceWarning, Iteration

__all__ = [
    "BLSPI",
    "BLSTD",
    "LSPI",
    "LSTD",
    "ConvergenceWarning",
    "Iteration",
    "NotFittedError",
]
