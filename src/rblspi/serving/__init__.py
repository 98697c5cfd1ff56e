"""Policies at work: decisions with ids, their outcomes, and an HTTP service.

`Decisions` is what a program in Python uses. ``rblspi serve`` offers the same over HTTP; it needs
the packages of ``rblspi[serve]``.
"""

from rblspi.serving.decisions import Decision, Decisions

__all__ = ["Decision", "Decisions"]
