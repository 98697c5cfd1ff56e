"""Agents that learn online, one file an algorithm."""

from rblspi.agents.base import ActionValues, Agent
from rblspi.agents.online_lspi import OnlineLSPI
from rblspi.agents.rblspi import RBLSPI

#: by name, for the command line and for files
ALGORITHMS: dict[str, type[Agent]] = {"rblspi": RBLSPI, "online-lspi": OnlineLSPI}

__all__ = ["ALGORITHMS", "RBLSPI", "ActionValues", "Agent", "OnlineLSPI"]
