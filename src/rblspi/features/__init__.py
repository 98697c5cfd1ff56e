"""State features: a basis is a recipe that is built for an observation space."""

from rblspi.features.base import Basis, Features
from rblspi.features.conversion import (
    BASES,
    BasisLike,
    as_basis,
    basis_from_settings,
    basis_from_text,
    basis_to_text,
)
from rblspi.features.custom import FunctionBasis, TransformerBasis
from rblspi.features.default import default_basis, with_bounds
from rblspi.features.fourier import Fourier
from rblspi.features.multilinear import Multilinear
from rblspi.features.network import Network
from rblspi.features.nystroem import Nystroem
from rblspi.features.one_hot import OneHot
from rblspi.features.polynomial import Polynomial
from rblspi.features.random_fourier import RandomFourier
from rblspi.features.rbf import RBFGrid
from rblspi.features.tiles import TileCoding

__all__ = [
    "BASES",
    "Basis",
    "BasisLike",
    "Features",
    "Fourier",
    "FunctionBasis",
    "Multilinear",
    "Network",
    "Nystroem",
    "OneHot",
    "Polynomial",
    "RBFGrid",
    "RandomFourier",
    "TileCoding",
    "TransformerBasis",
    "as_basis",
    "basis_from_settings",
    "basis_from_text",
    "basis_to_text",
    "default_basis",
    "with_bounds",
]
