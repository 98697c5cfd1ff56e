"""Agents that learn online, one file for each algorithm."""

from rblspi.online.agent import Agent
from rblspi.online.online_lspi import OnlineLSPI
from rblspi.online.opsrl import OPSRL
from rblspi.online.psrl import PSRL
from rblspi.online.rblspi import RBLSPI
from rblspi.online.rlsvi import RLSVI

__all__ = ["OPSRL", "PSRL", "RBLSPI", "RLSVI", "Agent", "OnlineLSPI"]
