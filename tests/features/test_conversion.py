import json

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

from rblspi.features import (
    BASES,
    Fourier,
    FunctionBasis,
    OneHot,
    Polynomial,
    RBFGrid,
    TileCoding,
    TransformerBasis,
    as_basis,
    basis_from_settings,
)

PLANE = gym.spaces.Box(-1.0, 1.0, (2,))


def one_or_each(values):
    """One value for all dimensions, or two, as a list, a tuple or an array."""
    pair = st.tuples(values, values)
    return st.one_of(values, pair, pair.map(list), pair.map(np.array))


counts = one_or_each(st.integers(2, 5))
widths = one_or_each(st.floats(0.5, 2.0))
low = st.none() | one_or_each(st.floats(-3.0, -1.0))
high = st.none() | one_or_each(st.floats(1.0, 3.0))
storable = st.one_of(
    st.builds(RBFGrid, counts, st.sampled_from(["cell", "edge"]), widths, low, high),
    st.builds(Polynomial, st.integers(1, 4), st.floats(0.5, 10.0), low, high),
    st.builds(Fourier, counts, low, high),
    st.builds(TileCoding, counts, st.integers(1, 8), low, high),
)


@settings(deadline=None, max_examples=100)
@given(storable)
def test_settings_come_back_from_json(basis):
    stored = json.loads(json.dumps(basis.settings()))
    again = basis_from_settings(stored)
    assert again == basis
    assert hash(again) == hash(basis)
    observation = [0.3, -0.7]
    np.testing.assert_array_equal(again.build(PLANE)(observation), basis.build(PLANE)(observation))


@pytest.mark.parametrize("name", BASES)
def test_every_named_basis_is_stored_by_its_name_and_says_what_it_is(name):
    basis = BASES[name]()
    assert basis_from_settings(json.loads(json.dumps(basis.settings()))) == basis
    assert basis.settings()["basis"] == name
    assert BASES[name].__doc__.splitlines()[0].endswith(".")


@pytest.mark.parametrize("basis", [FunctionBasis(np.sin), TransformerBasis(PolynomialFeatures(2))])
def test_own_basis_is_not_stored(basis):
    stored = json.loads(json.dumps(basis.settings()))
    with pytest.raises(ValueError, match=r"(sin|PolynomialFeatures), which is not stored.*basis="):
        basis_from_settings(stored)


def test_unknown_settings():
    with pytest.raises(ValueError, match=r"'Wavelets' is none of RBFGrid, .* basis="):
        basis_from_settings({"basis": "Wavelets"})
    with pytest.raises(ValueError, match="'colour'"):
        basis_from_settings({"basis": "OneHot", "colour": 1})


def test_as_basis():
    grid = RBFGrid(3)
    assert as_basis(grid) is grid
    assert as_basis(np.sin) == FunctionBasis(np.sin)
    transformer = PolynomialFeatures(2)
    assert as_basis(transformer) == TransformerBasis(transformer)


@pytest.mark.parametrize("value", [None, 8, "rbf", [1.0]])
def test_what_is_not_a_basis(value):
    with pytest.raises(TypeError, match=r"basis=.* is not a basis: pass for example RBFGrid\(8\)"):
        as_basis(value)


def test_a_class_is_not_a_basis_yet():
    with pytest.raises(TypeError, match=r"basis=OneHot is a class: pass an instance, OneHot\(\)"):
        as_basis(OneHot)
