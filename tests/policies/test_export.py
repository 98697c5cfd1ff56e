"""A policy that was exported as ONNX has the values and the actions of the policy itself."""

import warnings

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from rblspi import (
    BLSPI,
    FQI,
    Fourier,
    LinearPolicy,
    Multilinear,
    OneHot,
    Polynomial,
    RandomFourier,
    RBFGrid,
    TileCoding,
)
from rblspi.data import Columns
from rblspi.features import BASES
from rblspi.offline import ConvergenceWarning
from rblspi.policies import ValuePosterior
from tests.support.command import run
from tests.support.logs import episode_rows

pytest.importorskip("onnx", reason="onnx is not installed")
BOX = gym.spaces.Box(-1.0, 1.0, (3,), np.float64)
CELLS = gym.spaces.MultiDiscrete([4, 3], start=[-1, 2])
CASES = {
    "RBFGrid": (RBFGrid((3, 2, 4), width=(1.0, 0.7, 2.0)), BOX),
    "RBFGrid, edges": (RBFGrid(3, centres="edge"), BOX),
    "RBFGrid, angles": (RBFGrid((3, 2, 4), angles=(0, 2)), BOX),
    "RandomFourier": (RandomFourier(20, angles=(1,)), BOX),
    "OneHot, joint": (OneHot(joint=True), CELLS),
    "Polynomial": (Polynomial(3, scale=2.0), BOX),
    "Fourier": (Fourier((2, 1, 3)), BOX),
    "Multilinear": (Multilinear((3, 4, 2)), BOX),
    "Multilinear, an angle": (Multilinear((3, 4, 2), angles=(1,)), BOX),
    "Multilinear, a pair": (Multilinear((3, 4), angles=((1, 2),)), BOX),
    "TileCoding": (TileCoding((3, 4, 2), tilings=5), BOX),
    "OneHot": (OneHot(), CELLS),
    "a number": (Fourier(4), gym.spaces.Box(-1.0, 1.0, (), np.float64)),
    "a table": (OneHot(), gym.spaces.Discrete(5, start=3)),
}


def policy_of(name, actions=3):
    basis, space = CASES[name]
    features = basis.build(space)
    return LinearPolicy(
        basis=basis,
        features=features,
        weights=np.random.default_rng(0).standard_normal(actions * features.size),
        observation_space=space,
        action_space=gym.spaces.Discrete(actions, start=2),
    )


def states_of(space, count):
    """States inside the space and outside of it."""
    rng = np.random.default_rng(1)
    if isinstance(space, gym.spaces.Box):
        return rng.uniform(-1.5, 1.5, (count, *space.shape))
    return rng.integers(-3, 9, (count, *(space.shape or ())))


class Graph:
    """An exported policy as ONNX Runtime computes it, in batches."""

    def __init__(self, policy, folder):
        runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        policy.export(folder / "policy.onnx")
        providers = ["CPUExecutionProvider"]
        self.session = runtime.InferenceSession(folder / "policy.onnx", providers=providers)

    def __call__(self, output, **inputs):
        return self.session.run([output], inputs)[0]


def test_every_basis_is_among_the_cases():
    assert {type(basis) for basis, _ in CASES.values()} == {*BASES.values()}


@pytest.mark.parametrize("name", CASES)
def test_values_and_actions_are_the_same(name, tmp_path):
    policy = policy_of(name)
    graph = Graph(policy, tmp_path)
    states = states_of(policy.observation_space, 500)
    rows = states.reshape(len(states), -1).astype(np.float64)
    expected = policy.values(states)
    # A sum of n products is right to n roundings of its largest part.
    x, weights = np.abs(policy.features(states)), np.abs(policy.weights_by_action)
    bound = 1e-12 * np.maximum(x @ weights.T, 1e-300)
    assert (np.abs(expected - graph("values", observation=rows)) <= bound).all()
    first, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = first - second > 2 * bound.max(axis=1)
    known = x.any(axis=1)  # outside the space, all features of OneHot are 0
    assert known.sum() > 30
    assert clear[known].all()
    chosen = graph("action", observation=rows)
    np.testing.assert_array_equal(chosen[clear], policy.predict(states)[0][clear])


def test_a_graph_has_the_columns_of_the_log(tmp_path):
    """Of a pessimistic policy with words and missing numbers."""
    rows = pd.DataFrame(episode_rows(40))
    rows.loc[::7, "stock"] = np.nan
    columns = Columns(missing="indicator")
    basis = Polynomial(1, low=-1, high=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = BLSPI(basis, discount=0.8, pessimism=1.0, columns=columns).fit(rows)
    policy = fitted.policy()
    graph = Graph(policy, tmp_path)
    stock = np.array([-1.0, 0.3, np.nan, 0.5, np.nan])
    weekday = np.array(["Mon", "Tue", "Wed", "Mon", "Tue"], object)
    states = [{"stock": s, "weekday": w} for s, w in zip(stock, weekday, strict=True)]
    stated = ValuePosterior(policy, policy.posterior).action_values(states)
    given = {"stock": stock, "weekday": weekday}
    np.testing.assert_allclose(graph("values", **given), stated.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(graph("std", **given), stated.std, rtol=1e-9)
    assert graph("action", **given).tolist() == policy.act(states).tolist()
    for name, value in (("weekday", "Sun"), ("weekday", ""), ("stock", np.inf)):
        wrong = {k: column.copy() for k, column in given.items()}
        wrong[name][2] = value
        with pytest.raises(Exception, match="out of data bounds"):
            graph("values", **wrong)


def test_a_word_alone_is_its_place(tmp_path):
    rows = pd.DataFrame(episode_rows(40)).drop(columns="stock")
    policy = FQI(discount=0.8).fit(rows).policy()
    states = ["Mon", "Tue", "Wed", "Tue"]
    found = Graph(policy, tmp_path)("values", weekday=np.array(states, object))
    np.testing.assert_allclose(found, policy.values(states), rtol=1e-12)


def test_what_cannot_be_exported_is_named(tmp_path):
    policy = policy_of("Polynomial")
    with pytest.raises(ValueError, match=r"policy\.csv: a policy is exported as \.onnx"):
        policy.export(tmp_path / "policy.csv")
    with pytest.raises(ValueError, match="the policy has no posterior"):
        policy.export(tmp_path / "policy.onnx", std=True)
    rows = pd.DataFrame(episode_rows(40))
    own = FQI(lambda state: np.array([1.0, state[0]]), discount=0.8).fit(rows).policy()
    with pytest.raises(ValueError, match="cannot be exported: it is no basis of this library"):
        own.export(tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_command_exports_what_fit_saved(tmp_path, capsys):
    policy_of("TileCoding").save(tmp_path / "policy.npz")
    assert run("export", tmp_path, tmp_path / "policy.onnx") == 0
    assert "3 actions, 121 features each" in capsys.readouterr().out
    assert (tmp_path / "policy.onnx").exists()
    assert run("export", tmp_path, tmp_path / "policy.txt") == 2
