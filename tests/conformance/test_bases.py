"""Every registered basis keeps the promises of `Basis`: the suite goes over the registry.

A basis that is added to the registry is tested here with its default arguments, in the first of
the `SPACES` that it takes. `VARIANTS` has further arguments.
"""

import json
import math
from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest

from rblspi import (
    Fourier,
    Multilinear,
    Network,
    Nystroem,
    OneHot,
    Polynomial,
    RandomFourier,
    RBFGrid,
    TileCoding,
)
from rblspi.features import BASES, basis_from_settings, basis_from_text, basis_to_text
from rblspi.features.network import as_text
from tests.support.values import any_policy

BOX = gym.spaces.Box(np.array([-1.2, -1.0, 0.0]), np.array([0.5, 1.0, 2.0]), dtype=np.float64)
CELLS = gym.spaces.MultiDiscrete([4, 3], start=[-1, 2])
SPACES = (BOX, CELLS)
VARIANTS = [
    (RBFGrid((3, 2, 4), width=(1.0, 0.7, 2.0)), BOX),
    (RBFGrid(3, centres="edge"), BOX),
    (RBFGrid((3, 2, 4), angles=(0, 2)), BOX),
    (RandomFourier(20, angles=(1,)), BOX),
    (Nystroem([[0.0, 0.5, 1.0], [-1.0, 0.5, 0.0]], width=0.3, angles=(1,)), BOX),
    (OneHot(joint=True), CELLS),
    (Network((8, 4), mean=(1.0, 0.0, 2.0), std=0.5, seed=3), BOX),
    (Network(5), CELLS),
    (Network(2, weights=as_text(np.arange(8.0))), BOX),
    (OneHot(), gym.spaces.Discrete(5, start=3)),
    (Polynomial(3, scale=2.0), BOX),
    (Fourier((2, 1, 3)), BOX),
    (Fourier(4), gym.spaces.Box(-1.0, 1.0, (), np.float64)),
    (Multilinear((3, 4, 2), angles=(1,)), BOX),
    (Multilinear((3, 4), angles=((1, 2),)), BOX),
    (Multilinear((3, 4), angles=(1,), left_out=(0,)), BOX),
    (TileCoding((3, 4, 2), tilings=5), BOX),
]


def first_space(basis):
    """The first space that the basis takes."""
    for space in SPACES:
        try:
            basis.build(space)
        except TypeError:
            continue
        return space
    raise AssertionError(f"{basis} takes none of {SPACES}")


CASES = [(kind(), first_space(kind())) for kind in BASES.values()] + VARIANTS
every_basis = pytest.mark.parametrize(
    ("basis", "space"), CASES, ids=[f"{basis} over {space}" for basis, space in CASES]
)
by_name = pytest.mark.parametrize("name", BASES)


def observations(space, count=200):
    """Observations inside the space and some way outside of it, shape (count, ...)."""
    rng = np.random.default_rng(1)
    if isinstance(space, gym.spaces.Box):
        return rng.uniform(space.low - 0.5, space.high + 0.5, (count, *space.shape))
    return rng.integers(-3, 9, (count, *(space.shape or ()))).astype(np.float64)


@every_basis
def test_compiled_equals_plain_source(basis, space):
    features = basis.build(space)
    assert features.compiled
    plain = features._replace(function=features.function.py_func)
    assert not plain.compiled
    seen = observations(space, 20)
    np.testing.assert_allclose(features(seen), plain(seen), rtol=1e-15, atol=1e-300)


@every_basis
def test_a_batch_equals_its_rows_to_the_bit(basis, space):
    features, seen = basis.build(space), observations(space, 50)
    values = features(seen)
    assert values.shape == (50, features.size)
    np.testing.assert_array_equal(values, [features(row) for row in seen])


@every_basis
def test_every_entry_is_written_and_nothing_beyond(basis, space):
    features = basis.build(space)
    frame = np.empty(features.size + 8)
    for observation in observations(space):
        frame[:] = np.nan
        features.function(features.parameters, observation.reshape(-1), frame[4:-4])
        assert np.isfinite(frame[4:-4]).all()
        assert np.isnan(frame[:4]).all()
        assert np.isnan(frame[-4:]).all()


@every_basis
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_compiled_code_stays_within_its_arrays_on_observations_that_are_not_finite(
    basis, space, bad
):
    features = basis.build(space)
    frame, observation = np.full(features.size + 8, 7.0), np.zeros(features.input_size)
    observation[0] = bad
    features.function(features.parameters, observation, frame[4:-4])
    assert (frame[:4] == 7.0).all()
    assert (frame[-4:] == 7.0).all()


@every_basis
def test_the_weights_of_the_constant_function_give_one_everywhere(basis, space):
    features = basis.build(space)
    assert features.constant is not None
    seen = np.array([space.sample() for _ in range(50)])
    np.testing.assert_allclose(features(seen) @ features.constant, 1.0)


@every_basis
def test_an_onnx_graph_has_the_same_values_and_actions(basis, space, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    policy = any_policy(basis, space)
    policy.export(tmp_path / "policy.onnx")
    session = runtime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    seen = observations(space, 500)
    rows = {"observation": seen.reshape(len(seen), -1)}
    values, chosen = session.run(["values", "action"], rows)
    expected = policy.values(seen)
    # A sum of n products is right to n roundings of its largest part.
    x, weights = np.abs(policy.features(seen)), np.abs(policy.weights_by_action)
    bound = 1e-12 * np.maximum(x @ weights.T, 1e-300)
    assert (np.abs(expected - values) <= bound).all()
    first, second = np.sort(expected, axis=1)[:, :-3:-1].T
    clear = first - second > 2 * bound.max(axis=1)
    known = x.any(axis=1)  # outside the space, all features of OneHot are 0
    assert known.sum() > 30
    assert clear[known].all()
    np.testing.assert_array_equal(chosen[clear], policy.predict(seen)[0][clear])


@every_basis
def test_it_comes_back_from_its_settings_and_from_text(basis, space):
    again = basis_from_settings(json.loads(json.dumps(basis.settings())))
    assert again == basis
    assert hash(again) == hash(basis)
    assert basis_from_text(basis_to_text(basis) or "") == basis
    seen = observations(space, 5)
    np.testing.assert_array_equal(again.build(space)(seen), basis.build(space)(seen))


@by_name
def test_it_is_known_by_its_name_and_says_what_it_is(name):
    basis = BASES[name]()
    assert basis_from_text(name) == basis
    assert basis.settings()["basis"] == name
    assert str(basis_to_text(basis)).startswith(f"{name}(")
    assert str(BASES[name].__doc__).splitlines()[0].endswith(".")


@by_name
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dimensions_without_bounds_need_some(name, dtype):
    if not {"low", "high"} <= {field.name for field in fields(BASES[name])}:
        pytest.skip("it has no bounds")
    infinite = np.inf if dtype is np.float64 else np.finfo(dtype).max
    high = np.array([1.0, infinite], dtype)
    space = gym.spaces.Box(-high, high, dtype=dtype)
    with pytest.raises(ValueError, match=r"dimensions \[1\] have no bounds.*low=\[-1.0, -1.0\]"):
        BASES[name]().build(space)
    bounded = BASES[name]
    assert np.isfinite(bounded(low=[-1.0, -3.0], high=[1.0, 3.0]).build(space)([0.5, 9.0])).all()
