"""Conversion of arguments, text and file contents to bases, and of bases to text.

Text is never evaluated: arguments have to be literals.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Protocol

from rblspi.features.base import Basis
from rblspi.features.custom import FunctionBasis, TransformerBasis
from rblspi.registry import BASES as TARGETS
from rblspi.registry import loaded, nearest


class Transformer(Protocol):
    """The interface of a fitted scikit-learn transformer."""

    def transform(self, X: Any) -> Any:
        """Map rows of observations to rows of features."""


#: What a user may pass as ``basis``.
BasisLike = Basis | Callable[..., Any] | Transformer

_SHORT_NAMES: dict[str, type[Basis]] = {name: loaded(t) for name, t in TARGETS.items()}

#: The bases that have a name on the command line and in files.
BASES = {basis.__name__: basis for basis in _SHORT_NAMES.values()}


def as_basis(value: BasisLike) -> Basis:
    """Turn a basis, a function of the observation or a fitted transformer into a basis."""
    if isinstance(value, Basis):
        return value
    if isinstance(value, type):
        raise TypeError(f"basis={value.__name__} is a class: pass an instance, {value.__name__}()")
    if hasattr(value, "transform"):
        return TransformerBasis(value)
    if callable(value):
        return FunctionBasis(value)
    raise TypeError(
        f"basis={value!r} is not a basis: pass for example RBFGrid(8), a function of the "
        "observation, or a fitted scikit-learn transformer"
    )


def basis_from_text(text: str) -> Basis:
    """Read a basis as a user types it: ``rbf``, ``rbf:8`` or ``RBFGrid(8, width=0.5)``."""
    name, arguments, named = _parse_call(text)
    known = {name.lower(): kind for name, kind in BASES.items()} | _SHORT_NAMES
    if name.lower() not in known:
        raise ValueError(f"no basis is called {name!r}: {nearest(name, [*_SHORT_NAMES, *BASES])}")
    kind = known[name.lower()]
    try:
        return kind(*arguments, **named)
    except TypeError as error:
        raise ValueError(
            f"basis {text!r}: {error}; its arguments are {inspect.signature(kind)}"
        ) from None


def _parse_call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """The name, the positional arguments and the keyword arguments in a basis written as text."""
    name, colon, argument = text.partition(":")
    call_text = f"{name}({argument})" if colon else text if "(" in text else f"{text}()"
    try:
        call = ast.parse(call_text.strip(), mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            arguments = [ast.literal_eval(argument) for argument in call.args]
            named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
            return call.func.id, arguments, named
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    raise ValueError(
        f"basis {text!r} is not written as NAME, NAME:NUMBER or NAME(...): for example "
        'rbf:8 or "RBFGrid(8, width=0.5)"'
    )


def basis_to_text(basis: Basis) -> str | None:
    """Write a basis such that `basis_from_text` reads it; None for a user's own basis."""
    if BASES.get(type(basis).__name__) is not type(basis):
        return None
    values = ((field, getattr(basis, field.name)) for field in fields(basis))
    said = [f"{f.name}={v!r}" for f, v in values if v is not None or f.default is not None]
    return f"{type(basis).__name__}({', '.join(said)})"


def basis_from_settings(settings: Mapping[str, Any]) -> Basis:
    """Build the basis that `Basis.settings` describes, unless it is a user's own."""
    arguments = dict(settings)
    name = arguments.pop("basis", None)
    if "custom" in arguments:
        raise ValueError(
            f"the basis was made from {arguments['custom']}, which is not stored: pass it again "
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
