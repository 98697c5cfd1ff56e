"""Agents that learn online, one file an algorithm, and one that was fitted to logs."""

from rblspi.agents.base import ActionValues, Agent
from rblspi.agents.fitted import FittedPolicy
from rblspi.agents.online_lspi import OnlineLSPI
from rblspi.agents.rblspi import RBLSPI

#: by name, for the command line and for files
ALGORITHMS: dict[str, type[Agent]] = {"rblspi": RBLSPI, "online-lspi": OnlineLSPI}

__all__ = ["ALGORITHMS", "RBLSPI", "ActionValues", "Agent", "FittedPolicy", "OnlineLSPI"]
