"""The online agents: against the textbook, the floor, themselves and the bare environment."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.measure import (
    CAR,
    PAPER,
    Row,
    agent,
    multiply_add_rate,
    multiply_adds,
    seconds,
    step_time,
)
from examples import textbook
from rblspi import RBLSPI, RBFGrid
from rblspi.core.compiled import GENERATOR, INT, RESET, STEP, VECTOR, Entry, function_type

PENDULUM = RBFGrid(3, low=(-math.pi / 4, -1.0), high=(math.pi / 4, 1.0))


def textbook_time(update_every: int, steps: int) -> tuple[float, bool]:
    """Seconds a step of the textbook version, and whether ours walks the same trajectory."""
    ours = RBLSPI(
        gym.Wrapper(gym.make(CAR)), RBFGrid(8), update_every=update_every, seed=0, **PAPER
    )
    walks = []

    def walk() -> None:
        rng = textbook.agent_rng(0)
        seed, phi = ours.session.seed, ours.features
        env = gym.make(CAR)
        walks.append(
            textbook.rblspi(env, seed, phi, rng, steps, update_every=update_every, **PAPER)
        )

    elapsed = seconds(walk)
    ours.learn(steps)
    same = bool(np.allclose(ours.state.mean, walks[-1].weights, rtol=1e-3, atol=1e-3))
    return elapsed / steps, same


def against_textbook() -> list[Row]:
    rows = []
    for period, steps, goal in ((20, 2000, 60.0), (1, 200, 200.0)):
        slow, same = textbook_time(period, steps)
        fast = step_time(agent(period), 20_000)
        rows.append(
            Row(
                f"RBLSPI, mountain car, K = {period}, against textbook NumPy",
                slow / fast,
                "x faster",
                f"at least {goal:.0f}x",
                slow / fast >= goal and same,
                {"textbook_us": slow * 1e6, "ours_us": fast * 1e6, "same_trajectory": same},
            )
        )
    return rows


def periods() -> list[Row]:
    times = {period: step_time(agent(period), 20_000) for period in (1, 2, 5, 10, 20, 50, 100)}
    ratio = times[1] / times[20]
    rate = multiply_add_rate(195)
    floor = multiply_adds(65, 3, 20) / rate
    microseconds = {f"K={k}": t * 1e6 for k, t in times.items()}
    return [
        Row("K = 1 against K = 20, a step", ratio, "x", "at most 4x", ratio <= 4, microseconds),
        Row(
            "K = 20 against the floor by operation count",
            times[20] / floor,
            "x",
            "within 2.5x",
            times[20] / floor <= 2.5,
            {
                "ours_us": times[20] * 1e6,
                "floor_us": floor * 1e6,
                "multiply_adds_a_step": multiply_adds(65, 3, 20),
                "dgemm_multiply_adds_a_second": rate,
            },
        ),
    ]


def _bare(
    reset: Any, step: Any, parameters: Any, state: Any, steps: int, limit: int, rng: Any
) -> int:
    """The environment alone, under actions that cost nothing."""
    reset(parameters, state, rng)
    elapsed, episodes = 0, 0
    for _ in range(steps):
        # Push against the fall, so that episodes last as an agent's do.
        action = 2 if state[0] + 0.3 * state[1] > 0.0 else 0
        _, terminated, _ = step(parameters, state, action, rng)
        elapsed += 1
        if terminated or elapsed == limit:
            reset(parameters, state, rng)
            elapsed, episodes = 0, episodes + 1
    return episodes


def pendulum() -> list[Row]:
    env = gym.make("rblspi/InvertedPendulum-v0")
    dynamics: Any = env.unwrapped.dynamics  # type: ignore[attr-defined]
    bare = Entry(
        _bare,
        *(function_type(RESET), function_type(STEP), VECTOR, VECTOR, INT, INT, GENERATOR),
        what="the bare environment",
    )
    rng, steps = np.random.default_rng(0), 1_000_000

    def run(count: int) -> None:
        state = np.zeros(2)
        bare(dynamics.reset, dynamics.step, dynamics.parameters, state, count, 3000, rng)

    run(10)
    alone = seconds(lambda: run(steps))
    learner = RBLSPI(
        env, PENDULUM, prior_precision=10.0, noise_precision=100.0, discount=0.95, seed=0
    )
    learner.learn(episodes=100)
    ours = seconds(lambda: learner.learn(steps))
    return [
        Row(
            "pendulum 3x3, K = 20, 1,000,000 steps",
            ours,
            "s",
            "under 3 s",
            ours < 3.0,
            {"us_a_step": ours / steps * 1e6},
        ),
        Row(
            "the same against the bare compiled environment",
            ours / alone,
            "x",
            "at most 10x",
            ours / alone <= 10.0,
            {"bare_us": alone / steps * 1e6},
        ),
    ]


def sizes() -> list[Row]:
    """About 65, 195, 390 and 780 weights: three actions and a constant on each grid."""
    times = {}
    for grid in ((7, 3), (8, 8), (13, 10), (37, 7)):
        learner = agent(20, grid)
        weights = learner.features.size * learner.actions
        times[weights] = step_time(learner, 4000, rounds=2)
    exponent = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
    return [
        Row(
            "exponent of the cost of a step as k grows",
            float(exponent),
            "",
            "table",
            None,
            {f"k={k}": t * 1e6 for k, t in times.items()},
        )
    ]


def plain_python() -> list[Row]:
    details = {}
    for name in ("MountainCar", "InvertedPendulum"):
        basis = RBFGrid(8) if name == "MountainCar" else PENDULUM
        id_ = f"rblspi/{name}-v0"
        compiled = RBLSPI(id_, basis, seed=0, **PAPER).learn(500)
        plain = RBLSPI(gym.Wrapper(gym.make(id_)), basis, seed=0, **PAPER).learn(500)
        fast, slow = step_time(compiled, 100_000), step_time(plain, 5000)
        details[name] = {"plain_us": slow * 1e6, "compiled_us": fast * 1e6, "ratio": slow / fast}
    ratio = details["InvertedPendulum"]["ratio"]
    return [
        Row(
            "compiled path against our plain-Python path, pendulum",
            ratio,
            "x faster",
            "table",
            None,
            details,
        )
    ]


def _one_run(seed: int) -> int:
    return len(agent(20, seed=seed).learn(100_000).episodes)


def two_cores() -> list[Row]:
    if (os.cpu_count() or 1) < 2:
        return [Row("8 runs on 2 cores", None, "", "1.8x", None, {"skipped": "only one core"})]
    context = multiprocessing.get_context("spawn")

    def eight(workers: int) -> float:
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            list(pool.map(_one_run, range(workers)))  # imports and compiled code are loaded
            return seconds(lambda: list(pool.map(_one_run, range(8))))

    one, two = eight(1), eight(2)
    return [
        Row(
            "8 runs on 2 cores against 8 runs on 1",
            one / two,
            "x faster",
            "1.8x",
            one / two >= 1.8,
            {"one_core_s": one, "two_cores_s": two},
        )
    ]


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def memory() -> list[Row]:
    learner = RBLSPI(
        "rblspi/InvertedPendulum-v0",
        PENDULUM,
        prior_precision=10.0,
        noise_precision=100.0,
        discount=0.95,
        seed=0,
    )
    learner.learn(10_000)
    gc.collect()
    early = _resident()
    learner.learn(10_000_000 - 10_000)
    gc.collect()
    late = _resident()
    return [
        Row(
            "memory after 10,000,000 steps against after 10,000",
            late - early,
            "MB",
            "the same to 5 MB",
            abs(late - early) <= 5.0,
            {"early_mb": early, "late_mb": late},
        )
    ]
