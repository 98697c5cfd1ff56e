"""Agents that learn online, one file for each algorithm."""

from rblspi.online.agent import Agent
from rblspi.online.fitted_rmax import FittedRmax
from rblspi.online.lbrl import LBRL
from rblspi.online.lsvi_ucb import LSVIUCB
from rblspi.online.online_lspi import OnlineLSPI
from rblspi.online.opsrl import OPSRL
from rblspi.online.optimistic_lsvi import OptimisticLSVI
from rblspi.online.psrl import PSRL
from rblspi.online.rblspi import RBLSPI
from rblspi.online.rlsvi import RLSVI
from rblspi.online.rmax_lspi import RmaxLSPI

__all__ = [
    "LBRL",
    "LSVIUCB",
    "OPSRL",
    "PSRL",
    "RBLSPI",
    "RLSVI",
    "Agent",
    "FittedRmax",
    "OnlineLSPI",
    "OptimisticLSVI",
    "RmaxLSPI",
]
