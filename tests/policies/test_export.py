"""An exported policy has the values and the actions of the policy itself."""

import json
import subprocess
import sys
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
from rblspi.offline import ConvergenceWarning
from rblspi.policies import ValuePosterior
from rblspi.policies.export import model_of
from rblspi.policies.standalone import StandalonePolicy
from tests.support.command import run
from tests.support.logs import ACTIONS, episode_rows

BOX = gym.spaces.Box(-1.0, 1.0, (3,), np.float64)
CELLS = gym.spaces.MultiDiscrete([4, 3], start=[-1, 2])
BASES = {
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


def policy_of(name, actions=3, seed=0):
    basis, space = BASES[name]
    features = basis.build(space)
    weights = np.random.default_rng(seed).standard_normal(actions * features.size)
    return LinearPolicy(
        basis=basis,
        features=features,
        weights=weights,
        observation_space=space,
        action_space=gym.spaces.Discrete(actions, start=2),
    )


def states_of(space, count):
    """States inside the space and outside of it."""
    rng = np.random.default_rng(1)
    if isinstance(space, gym.spaces.Box):
        return rng.uniform(-1.5, 1.5, (count, *space.shape))
    return rng.integers(-3, 9, (count, *(space.shape or ())))


class OnnxPolicy:
    """An exported graph as ONNX Runtime computes it, in batches."""

    def __init__(self, path):
        runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        self.session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def __call__(self, output, **inputs):
        return self.session.run([output], inputs)[0]

    def on(self, policy, output, states):
        """An output for observations without names."""
        return self(output, observation=states.reshape(len(states), -1).astype(np.float64))


def exported(policy, path):
    """The actions and the values of an exported policy, as functions of states."""
    policy.export(path)
    if path.suffix == ".onnx":
        graph = OnnxPolicy(path)
        return (lambda s: graph.on(policy, "action", s)), (lambda s: graph.on(policy, "values", s))
    if path.suffix == ".json":
        found = StandalonePolicy(json.loads(path.read_text()))
        act, values = found.act, found.values
    else:
        act, values = (loaded(path)[name] for name in ("act", "values"))
    return (lambda s: [act(state) for state in s]), (lambda s: [values(state) for state in s])


def loaded(path):
    """The module in a file, without this library."""
    names = {"__name__": "exported"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return names


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("ending", ["json", "py", "onnx"])
def test_values_and_actions_are_the_same(name, ending, tmp_path):
    policy = policy_of(name)
    act, values = exported(policy, tmp_path / f"policy.{ending}")
    states = states_of(policy.observation_space, 500)
    expected = policy.values(states)
    # A sum of n products is right to n roundings of its largest part.
    x, weights = np.abs(policy.features(states)), np.abs(policy.weights_by_action)
    bound = 1e-12 * np.maximum(x @ weights.T, 1e-300)
    assert (np.abs(expected - values(states)) <= bound).all()
    first, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = first - second > 2 * bound.max(axis=1)
    known = x.any(axis=1)  # outside the space, all features of OneHot are 0
    assert known.sum() > 30
    assert clear[known].all()
    np.testing.assert_array_equal(np.array(act(states))[clear], policy.predict(states)[0][clear])


@pytest.fixture(scope="module")
def careful():
    """A pessimistic policy with words and missing numbers."""
    rows = pd.DataFrame(episode_rows(40))
    rows.loc[::7, "stock"] = np.nan
    fitted = BLSPI(
        Polynomial(1, low=-1, high=1),
        discount=0.8,
        pessimism=1.0,
        columns=Columns(missing="indicator"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fitted.fit(rows).policy()


def as_exported(policy):
    """What the posterior by which the policy acts says."""
    return ValuePosterior(policy, policy.posterior)


def test_names_words_and_missing_values_are_understood(careful, tmp_path):
    policy = careful
    policy.export(tmp_path / "policy.py")
    act, values, std = (loaded(tmp_path / "policy.py")[n] for n in ("act", "values", "std"))
    for stock in (-1.0, 0.3, None, "NA", "0.5"):
        for weekday in ("Mon", "Tue", "Wed"):
            state = {"stock": stock, "weekday": weekday}
            assert act(state) in ACTIONS
            assert act(state) == policy.act(state)
            stated = as_exported(policy).action_values(state)
            np.testing.assert_allclose(values(state), stated.mean, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(std(state), stated.std, rtol=1e-9)
    for wrong, message in [
        ({"stock": 1, "weekday": "Sun"}, "weekday='Sun' is none of Mon, Tue, Wed"),
        ({"stock": 1}, "the state has no 'weekday'"),
        ({"stock": "x", "weekday": "Mon"}, "stock='x' must be a number"),
        ({"stock": 1, "weekday": None}, "weekday is missing: give a value"),
        ([1], "a state has 2 values, not 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            act(wrong)


def test_a_graph_has_the_columns_of_the_log(careful, tmp_path):
    careful.export(tmp_path / "policy.onnx")
    graph = OnnxPolicy(tmp_path / "policy.onnx")
    stock = np.array([-1.0, 0.3, np.nan, 0.5, np.nan])
    weekday = np.array(["Mon", "Tue", "Wed", "Mon", "Tue"], object)
    states = [{"stock": s, "weekday": w} for s, w in zip(stock, weekday, strict=True)]
    stated = as_exported(careful).action_values(states)
    columns = {"stock": stock, "weekday": weekday}
    np.testing.assert_allclose(graph("values", **columns), stated.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(graph("std", **columns), stated.std, rtol=1e-9)
    assert graph("action", **columns).tolist() == careful.act(states).tolist()
    for name, value in (("weekday", "Sun"), ("weekday", ""), ("stock", np.inf)):
        wrong = {k: column.copy() for k, column in columns.items()}
        wrong[name][2] = value
        with pytest.raises(Exception, match="out of data bounds"):
            graph("values", **wrong)


def test_a_word_alone_is_its_place(tmp_path):
    rows = pd.DataFrame(episode_rows(40)).drop(columns="stock")
    policy = FQI(discount=0.8).fit(rows).policy()
    policy.export(tmp_path / "policy.onnx")
    states = ["Mon", "Tue", "Wed", "Tue"]
    found = OnnxPolicy(tmp_path / "policy.onnx")("values", weekday=np.array(states, object))
    expected = policy.values(states)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    standalone = StandalonePolicy(model_of(policy))
    np.testing.assert_allclose([standalone.values(s) for s in states], expected, rtol=1e-12)


def test_the_module_answers_other_programs_without_any_package(tmp_path):
    rows = pd.DataFrame(episode_rows(40))
    policy = FQI(Polynomial(1, low=-1, high=1), discount=0.8).fit(rows).policy()
    policy.export(tmp_path / "policy.py")
    states = [{"stock": 0.1 * i, "weekday": "Tue"} for i in range(-9, 9)]
    asked = "\n".join(map(json.dumps, states))
    # -S and -I leave out all installed packages.
    command = [sys.executable, "-I", "-S", str(tmp_path / "policy.py")]
    said = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    assert [json.loads(line) for line in said.stdout.splitlines()] == list(policy.act(states))


def test_the_module_goes_on_after_a_state_that_it_cannot_read(tmp_path):
    policy = FQI(Polynomial(1, low=-1, high=1), discount=0.8).fit(pd.DataFrame(episode_rows(40)))
    policy.policy().export(tmp_path / "policy.py")
    good = {"stock": 0.1, "weekday": "Tue"}
    asked = "\n".join(["no JSON", "3", '{"stock": 0.1}', json.dumps({**good, "weekday": "May"})])
    command = [sys.executable, "-I", "-S", str(tmp_path / "policy.py")]
    asked = f"{asked}\n{json.dumps(good)}"
    said = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    *errors, answer = [json.loads(line) for line in said.stdout.splitlines()]
    assert answer == policy.act(good)
    assert all(error.keys() == {"error"} for error in errors)
    assert errors[2]["error"] == "the state has no 'weekday'"
    assert errors[3]["error"] == "weekday='May' is none of Mon, Tue, Wed"


def test_what_cannot_be_exported_is_named(tmp_path):
    policy = policy_of("Polynomial")
    with pytest.raises(
        ValueError, match=r"policy\.csv: a policy is exported as \.json, as \.py or as \.onnx"
    ):
        policy.export(tmp_path / "policy.csv")
    with pytest.raises(ValueError, match="the policy has no posterior"):
        policy.export(tmp_path / "policy.json", std=True)
    rows = pd.DataFrame(episode_rows(40))
    own = FQI(lambda state: np.array([1.0, state[0]]), discount=0.8).fit(rows).policy()
    with pytest.raises(ValueError, match="cannot be exported: it is no basis of this library"):
        own.export(tmp_path / "policy.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="not a policy that rblspi exported"):
        StandalonePolicy({"format": "something"})


def test_the_command_exports_what_fit_saved(tmp_path, capsys):
    policy = policy_of("TileCoding")
    policy.save(tmp_path / "policy.npz")
    assert run("export", tmp_path, tmp_path / "policy.json") == 0
    assert "3 actions, 121 features each" in capsys.readouterr().out
    model = json.loads((tmp_path / "policy.json").read_text())
    assert model["actions"] == [2, 3, 4]
    assert model["version"] == 1
    assert run("export", tmp_path, tmp_path / "policy.txt") == 2


@pytest.mark.parametrize("name", ["RBFGrid", "RBFGrid, edges", "RBFGrid, angles", "RandomFourier"])
@pytest.mark.parametrize("far", [1.0, 3.0, 100.0, 1e300])
def test_values_are_the_same_with_numpy_and_without(name, far, monkeypatch):
    if name == "RandomFourier" and far > 3.0:
        pytest.skip("waves of large numbers are known to few digits, whoever computes them")
    policy = policy_of(name, actions=5)
    model = model_of(policy)
    states = far * states_of(policy.observation_space, 200)
    if "angles" in name:
        states[:, [0, 2]] %= 7.0
    with_numpy = StandalonePolicy(model)
    monkeypatch.setitem(sys.modules, "numpy", None)
    without = StandalonePolicy(model)
    monkeypatch.undo()
    assert with_numpy._fast is not None
    assert without._fast is None
    for state in states.tolist():
        one, other = with_numpy.values(state), without.values(state)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
        assert with_numpy.act(state) == without.act(state)


def test_few_weights_do_not_need_numpy():
    policy = policy_of("RBFGrid, edges", actions=1)
    assert policy.features.size < 40
    assert StandalonePolicy(model_of(policy))._fast is None
    assert StandalonePolicy(model_of(policy_of("Fourier", actions=5)))._fast is not None
