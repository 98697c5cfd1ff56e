"""Least-squares policy iteration with a Bayesian posterior."""

from rblspi.environments import register as _register

__version__ = "0.1.0"

_register()
