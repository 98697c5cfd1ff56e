"""Agents that learn online, one file for each algorithm."""

from rblspi.online.agent import Agent
from rblspi.online.online_lspi import OnlineLSPI
from rblspi.online.rblspi import RBLSPI

__all__ = ["RBLSPI", "Agent", "OnlineLSPI"]
