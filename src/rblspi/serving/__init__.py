"""Policies at work: decisions with ids, their outcomes, and an HTTP service.

Programs in Python use `Decisions`. ``rblspi serve`` offers the same over HTTP; it needs
the packages of ``rblspi[serve]``.
"""

from rblspi.serving.decisions import Decision, Decisions

__all__ = ["Decision", "Decisions"]
