"""Bases from what users pass and from what files hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rblspi.features.base import Basis
from rblspi.features.custom import FunctionBasis, TransformerBasis
from rblspi.features.fourier import Fourier
from rblspi.features.one_hot import OneHot
from rblspi.features.polynomial import Polynomial
from rblspi.features.rbf import RBFGrid
from rblspi.features.tiles import TileCoding


class Transformer(Protocol):
    """What a fitted scikit-learn transformer offers."""

    def transform(self, X: Any) -> Any:
        """Map rows of observations to rows of features."""


#: What a user may pass as ``basis``.
BasisLike = Basis | Callable[..., Any] | Transformer

#: The bases that can be named, on a command line or in a file.
BASES: dict[str, type[Basis]] = {
    basis.__name__: basis for basis in (RBFGrid, Polynomial, Fourier, TileCoding, OneHot)
}


def as_basis(value: BasisLike) -> Basis:
    """Make a basis of a basis, a function of the observation or a fitted transformer."""
    if isinstance(value, Basis):
        return value
    if isinstance(value, type):
        raise TypeError(f"basis={value.__name__} is a class: pass an instance, {value.__name__}()")
    if hasattr(value, "transform"):
        return TransformerBasis(value)
    if callable(value):
        return FunctionBasis(value)
    raise TypeError(
        f"basis={value!r} is not a basis: pass for example RBFGrid(8), or a function of the "
        "observation, or a fitted scikit-learn transformer"
    )


def basis_from_settings(settings: Mapping[str, Any]) -> Basis:
    """Make the basis that these `Basis.settings` describe.

    Raises
    ------
    ValueError
        If the basis is the user's own, of which only the name is stored.
    """
    arguments = dict(settings)
    name = arguments.pop("basis", None)
    if "custom" in arguments:
        raise ValueError(
            f"the basis was made of {arguments['custom']}, which is not stored: pass it again "
            "as basis="
        )
    if name not in BASES:
        raise ValueError(
            f"basis {name!r} is none of {', '.join(BASES)}: if it is your own, pass it again "
            "as basis="
        )
    try:
        return BASES[name](**arguments)
    except TypeError as error:
        raise ValueError(f"settings {dict(settings)} do not describe a basis: {error}") from error
