"""Estimators of values and policies from logged transitions, with scikit-learn's interface."""

from rblspi.offline.blspi import BLSPI
from rblspi.offline.blstd import BLSTD
from rblspi.offline.coverage import Coverage, coverage
from rblspi.offline.estimator import NotFittedError
from rblspi.offline.lspi import LSPI
from rblspi.offline.lstd import LSTD
from rblspi.offline.off_policy import PolicyValue, policy_value
from rblspi.offline.policy_iteration import ConvergenceWarning, Iteration

__all__ = [
    "BLSPI",
    "BLSTD",
    "LSPI",
    "LSTD",
    "ConvergenceWarning",
    "Coverage",
    "Iteration",
    "NotFittedError",
    "PolicyValue",
    "coverage",
    "policy_value",
]
