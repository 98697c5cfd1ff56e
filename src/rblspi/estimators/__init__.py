"""Estimators of values and policies from logged transitions, in scikit-learn's shape."""

from rblspi.estimators.base import NotFittedError
from rblspi.estimators.blspi import BLSPI
from rblspi.estimators.blstd import BLSTD
from rblspi.estimators.cluster import OnCluster
from rblspi.estimators.coverage import Coverage, coverage
from rblspi.estimators.iteration import Iteration
from rblspi.estimators.lspi import LSPI
from rblspi.estimators.lstd import LSTD
from rblspi.estimators.off_policy import PolicyValue, policy_value
from rblspi.estimators.policy_iteration import ConvergenceWarning

__all__ = [
    "BLSPI",
    "BLSTD",
    "LSPI",
    "LSTD",
    "ConvergenceWarning",
    "Coverage",
    "Iteration",
    "NotFittedError",
    "OnCluster",
    "PolicyValue",
    "coverage",
    "policy_value",
]
