"""Experiments that take a moment, for tests of what runs, stores and reports them."""

from __future__ import annotations

from rblspi.experiments.definitions import Curve, Figure, Group, Panel

BASIS = {"basis": "RBFGrid", "cells": 3}


def curve(algorithm="rblspi", episodes=12, label="", **settings) -> Curve:
    return Curve(
        algorithm, "rblspi/MountainCar-v0", BASIS, settings, episodes, label=label or algorithm
    )


CURVES = [
    curve(prior_precision=0.001, noise_precision=0.1, update_every=20),
    curve(prior_precision=0.01, noise_precision=0.1, update_every="episode"),
    curve("online-lspi", update_every=20, policy="on"),
]
FIGURE = Figure("small", "A small figure", (Group("", (Panel("all", tuple(CURVES)),)),), block=4)
