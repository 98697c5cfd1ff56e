"""Estimators of values and policies from logged transitions, with scikit-learn's interface."""

from rblspi.offline.comparison import Comparison, compare
from rblspi.offline.data_report import DataReport, data_report
from rblspi.offline.estimates import Estimates, estimates
from rblspi.offline.estimator import NotFittedError
from rblspi.offline.fqi import FQI
from rblspi.offline.gptd import GPTD
from rblspi.offline.held_out import calibrate_on_log
from rblspi.offline.lspi import BLSPI, LSPI
from rblspi.offline.lstd import BLSTD, LSTD
from rblspi.offline.off_policy import PolicyValue, policy_value
from rblspi.offline.policy_iteration import ConvergenceWarning, Iteration
from rblspi.offline.sl_lstd import SLLSTD
from rblspi.offline.support import Coverage, Finding, coverage, support
from rblspi.offline.trust import TrustReport, trust

__all__ = [
    "BLSPI",
    "BLSTD",
    "FQI",
    "GPTD",
    "LSPI",
    "LSTD",
    "SLLSTD",
    "Comparison",
    "ConvergenceWarning",
    "Coverage",
    "DataReport",
    "Estimates",
    "Finding",
    "Iteration",
    "NotFittedError",
    "PolicyValue",
    "TrustReport",
    "calibrate_on_log",
    "compare",
    "coverage",
    "data_report",
    "estimates",
    "policy_value",
    "support",
    "trust",
]
