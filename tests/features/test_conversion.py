import json

import numpy as np
import pytest
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


def test_lists_arrays_and_tuples_make_the_same_basis():
    one, two, three = (
        RBFGrid(cells, width=np.float64(0.5), low=low)
        for cells, low in (([3, 4], [0, 1]), ((3, 4), (0, 1)), (np.array([3, 4]), np.array([0, 1])))
    )
    assert one == two == three
    assert hash(one) == hash(two) == hash(three)
    assert basis_from_settings(json.loads(json.dumps(three.settings()))) == one
    assert basis_from_text(basis_to_text(three)) == one


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
