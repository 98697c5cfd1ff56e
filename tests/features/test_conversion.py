import json

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

from rblspi.features import (
    Fourier,
    FunctionBasis,
    Multilinear,
    OneHot,
    Polynomial,
    RandomFourier,
    RBFGrid,
    TileCoding,
    TransformerBasis,
    as_basis,
    basis_from_settings,
    basis_from_text,
    basis_to_text,
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
    st.builds(RandomFourier, st.sampled_from([2, 10]), widths, low, high, seed=st.integers(0, 9)),
    st.builds(Multilinear, counts, low, high),
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


@settings(deadline=None, max_examples=100)
@given(storable)
def test_a_basis_comes_back_from_text(basis):
    assert basis_from_text(basis_to_text(basis)) == basis


@pytest.mark.parametrize(
    ("text", "basis"),
    [
        ("rbf", RBFGrid()),
        ("rbf:8", RBFGrid(8)),
        ("RBF:(3, 4)", RBFGrid((3, 4))),
        ("RBFGrid(8, width=0.5)", RBFGrid(8, width=0.5)),
        (" rbfgrid(8, centres='edge', low=[-1, 0]) ", RBFGrid(8, "edge", low=(-1, 0))),
        ("polynomial:2", Polynomial(2)),
        ("Polynomial(4, scale=10, low=-1, high=19)", Polynomial(4, scale=10, low=-1, high=19)),
        ("fourier", Fourier()),
        ("random:64", RandomFourier(64)),
        ("multilinear:20", Multilinear(20)),
        ("tiles:4, 16", TileCoding(4, 16)),
        ("onehot", OneHot()),
        ("OneHot()", OneHot()),
    ],
)
def test_bases_are_read_from_text(text, basis):
    assert basis_from_text(text) == basis


def test_only_what_was_given_is_written():
    assert basis_to_text(Polynomial(2, low=-1)) == "Polynomial(degree=2, scale=1.0, low=-1)"


def test_own_bases_have_no_text():
    class RBFGrid(TileCoding):  # shares its name with a known basis
        pass

    for basis in (FunctionBasis(np.sin), TransformerBasis(PolynomialFeatures(2)), RBFGrid()):
        assert basis_to_text(basis) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rbff", "no basis is called 'rbff': did you mean rbf"),
        ("xyz", "no basis is called 'xyz': choose from rbf, polynomial"),
        ("rbf:__import__('os')", r"is not written as NAME, NAME:NUMBER or NAME\(\.\.\.\)"),
        ("RBFGrid(open('x'))", r"is not written as NAME, NAME:NUMBER or NAME\(\.\.\.\)"),
        ("rbf(8", r"is not written as NAME, NAME:NUMBER or NAME\(\.\.\.\)"),
        ("os.system(1)", r"is not written as NAME, NAME:NUMBER or NAME\(\.\.\.\)"),
        ("", r"basis '' is not written as NAME, NAME:NUMBER or NAME\(\.\.\.\)"),
        (
            "RBFGrid(8, colour=1)",
            r"unexpected keyword argument 'colour'; its arguments are \(cells",
        ),
    ],
)
def test_text_that_is_not_a_basis(text, message):
    with pytest.raises(ValueError, match=message):
        basis_from_text(text)
