"""Experiments that take a moment, and results that nobody had to wait for."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from rblspi.experiments.definitions import Curve, Figure, Group, Panel
from rblspi.experiments.results import CurveResult, FigureResult, read
from rblspi.experiments.results_store import Store
from rblspi.experiments.tasks import Record

BASIS = {"basis": "RBFGrid", "cells": 3}
VERSIONS = {"python": "3.x", "numpy": "2.x"}


def curve(algorithm="rblspi", episodes=12, label="", **settings):
    return Curve(
        algorithm, "rblspi/MountainCar-v0", BASIS, settings, episodes, label=label or algorithm
    )


CURVES = [
    curve(prior_precision=0.001, noise_precision=0.1, update_every=20),
    curve(label="K = 500", prior_precision=0.01, noise_precision=0.1, update_every="episode"),
    curve("online-lspi", update_every=20, on_policy=True),
]
#: the same under readings of the paper, with other arguments of the environment, too
READ = [
    replace(CURVES[0], arguments={"start": (-0.5, -0.5)}),
    curve(prior_precision=0.001, noise_precision=0.1, first_update=1, limit_ends=True),
]


def figure_of(*panels):
    """A figure with the curves of each panel."""
    shown = tuple(Panel(f"panel {i}", tuple(curves)) for i, curves in enumerate(panels))
    return Figure("small", "A small figure", (Group("", shown),), block=4)


FIGURE = figure_of(CURVES)

#: a file that describes an experiment
TOML = """
id = "mine"
title = "Mine"
measure = "return"
block = 10
environment = "rblspi/MountainCar-v0"
episodes = 30
algorithm = "rblspi"
basis = { basis = "RBFGrid", cells = 3 }
settings = { discount = 0.98, prior_precision = 0.01, noise_precision = 2.0 }

[[panel]]
title = "first"
settings = { noise_precision = 0.1 }

[[panel.curve]]
label = "a"
settings = { update_every = 20 }

[[panel.curve]]
label = "b"
algorithm = "online-lspi"
episodes = 40
"""


def one_thread():
    return ThreadPoolExecutor(1)


def arrays_of(path):
    """The arrays of all curves in a results file."""
    with Store(path) as store:
        result = read(store, FIGURE)
    return [result[curve].arrays for curve in CURVES]


def assert_same(a, b):
    """All arrays are equal to the last bit."""
    for one, other in zip(a, b, strict=True):
        for name in one:
            assert one[name].tobytes() == other[name].tobytes()


def records(seeds, code="0123456789abcdef"):
    """Records of runs with these seeds."""
    return tuple(Record(s, code, 2.0, 1000, (), VERSIONS, "2026-01-01") for s in seeds)


def invented(figure, runs=4):
    """Runs that nobody made; their episodes fall from 500 steps to 100."""
    rng = np.random.default_rng(1)

    def result(curve):
        if not curve.episodes:
            policy = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
            tables = tuple(rng.random((4, 20, 2)) + 3 * policy for _ in range(runs))
            return CurveResult(curve, records(range(runs)), {}, tables, True)
        fall = 100 + 400 * np.exp(-np.arange(curve.episodes) / 50)
        noise = rng.normal(size=(runs, curve.episodes))
        length = fall + 10 * noise
        arrays = {"length": length, "return": -fall + 10 * noise, "under_limit": length < 500}
        return CurveResult(curve, records(range(runs)), arrays, (), True)

    return FigureResult(figure, [result(curve) for curve in figure.curves])
