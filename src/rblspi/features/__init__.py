"""State features: bases, and what they become for the observations of a space."""

from rblspi.features.base import Basis, Features
from rblspi.features.conversion import BASES, BasisLike, as_basis, basis_from_settings
from rblspi.features.custom import FunctionBasis, TransformerBasis
from rblspi.features.default import default_basis
from rblspi.features.fourier import Fourier
from rblspi.features.one_hot import OneHot
from rblspi.features.polynomial import Polynomial
from rblspi.features.rbf import RBFGrid
from rblspi.features.tiles import TileCoding

__all__ = [
    "BASES",
    "Basis",
    "BasisLike",
    "Features",
    "Fourier",
    "FunctionBasis",
    "OneHot",
    "Polynomial",
    "RBFGrid",
    "TileCoding",
    "TransformerBasis",
    "as_basis",
    "basis_from_settings",
    "default_basis",
]
