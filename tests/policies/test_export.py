"""What an exported policy takes and refuses; values are compared in conformance/test_bases.py."""

import warnings

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from rblspi import BLSPI, FQI, LinearPolicy, Polynomial, TileCoding
from rblspi.data import Columns
from rblspi.offline import ConvergenceWarning
from tests.support.command import run
from tests.support.logs import episode_rows

pytest.importorskip("onnx", reason="onnx is not installed")
BOX = gym.spaces.Box(-1.0, 1.0, (3,), np.float64)


def policy_of(basis, actions=3):
    features = basis.build(BOX)
    return LinearPolicy(
        basis=basis,
        features=features,
        weights=np.random.default_rng(0).standard_normal(actions * features.size),
        observation_space=BOX,
        action_space=gym.spaces.Discrete(actions, start=2),
    )


class Graph:
    """An exported policy as ONNX Runtime computes it, in batches."""

    def __init__(self, policy, folder):
        runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        policy.export(folder / "policy.onnx", std=policy.value_draws is not None)
        providers = ["CPUExecutionProvider"]
        self.session = runtime.InferenceSession(folder / "policy.onnx", providers=providers)

    def __call__(self, output, **inputs):
        return self.session.run([output], inputs)[0]


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
    stated = policy.action_values(states)
    given = {"stock": stock, "weekday": weekday}
    np.testing.assert_allclose(graph("values", **given), stated.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(graph("std", **given), stated.std, rtol=1e-6)
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
    policy = policy_of(Polynomial(3, scale=2.0))
    with pytest.raises(ValueError, match=r"policy\.csv: a policy is exported as \.onnx"):
        policy.export(tmp_path / "policy.csv")
    with pytest.raises(ValueError, match="the policy has no draws"):
        policy.export(tmp_path / "policy.onnx", std=True)
    rows = pd.DataFrame(episode_rows(40))
    own = FQI(lambda state: np.array([1.0, state[0]]), discount=0.8).fit(rows).policy()
    with pytest.raises(ValueError, match="cannot be exported: it is no basis of this library"):
        own.export(tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_command_exports_what_fit_saved(tmp_path, capsys):
    policy_of(TileCoding((3, 4, 2), tilings=5)).save(tmp_path / "policy.npz")
    assert run("export", tmp_path, tmp_path / "policy.onnx") == 0
    assert "3 actions, 121 features each" in capsys.readouterr().out
    assert (tmp_path / "policy.onnx").exists()
    assert run("export", tmp_path, tmp_path / "policy.txt") == 2
