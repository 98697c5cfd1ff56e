"""How this library compiles, and the types of the functions that compiled code takes.

Compiled code receives an environment and a basis as *first-class functions*: values of a
declared signature. The interaction loop is therefore compiled once for every kind of agent,
kept on disk, and serves every environment and basis, a user's own included.

A cached function does not notice that a function it calls, in another file, has changed.
The cache directory is therefore named after a digest of every file that holds compiled code.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

Function = TypeVar("Function", bound=Callable[..., Any])

FLOAT = types.float64
INT = types.int64
BOOL = types.boolean
VECTOR = types.Array(types.float64, 1, "C")
MATRIX = types.Array(types.float64, 2, "C")
GENERATOR = numba.typeof(np.random.default_rng(0))

#: reset(parameters, state, rng): write a first state into ``state``.
RESET = types.void(VECTOR, VECTOR, GENERATOR)
#: step(parameters, state, action, rng) -> (reward, terminated, truncated): advance ``state``.
STEP = types.Tuple((FLOAT, BOOL, BOOL))(VECTOR, VECTOR, INT, GENERATOR)
#: features(parameters, observation, out): write phi(observation) into ``out``.
FEATURES = types.void(VECTOR, VECTOR, VECTOR)


def function_type(signature: Any) -> types.FunctionType:
    """Type of an argument that is a compiled function with this signature."""
    return types.FunctionType(signature)


@cache
def cache_directory() -> Path:
    """Where compiled code is kept: named after the sources it was compiled from."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        text = source.read_bytes()
        if b"@jit" in text:
            digest.update(text)
    root = os.environ.get("NUMBA_CACHE_DIR") or (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rblspi"
    )
    return Path(root) / digest.hexdigest()[:16]


@contextmanager
def _cached_here() -> Iterator[None]:
    """Numba asks for the cache directory when a function is decorated: answer only for ours."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_directory())
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def jit(function: Function, *, counting: bool = True, **options: Any) -> Function:
    """Compile on first use, keep on disk, run without the interpreter lock.

    Division by zero follows IEEE 754, as in NumPy. The plain function is ``.py_func``. Whether
    references are counted, see `jit_borrowing`, is said of every function: left open, it would
    follow the function that calls it first. Numba's option for it is not a public one.
    """
    with _cached_here():
        compiled: Function = numba.njit(
            cache=True, nogil=True, error_model="numpy", _nrt=counting, **options
        )(function)
    return compiled


def jit_borrowing(function: Function, **options: Any) -> Function:
    """As `jit`, for code that works on its caller's arrays only: it counts no references.

    Counting is atomic, and happens each time an array is taken out of a tuple or sliced. Code
    like this can make no array, and Python must not hand it a random generator, which would
    never be released.
    """
    return jit(function, counting=False, **options)


def jit_inlined(function: Function) -> Function:
    """As `jit_borrowing`, and becomes part of its caller: spares passing a large tuple."""
    return jit_borrowing(function, forceinline=True)


def jit_reordering(function: Function) -> Function:
    """As `jit_borrowing`, and sums may be reordered and fused so that they vectorise."""
    return jit_borrowing(function, fastmath={"reassoc", "contract", "nsz"})


def is_compiled(function: object) -> bool:
    """Whether compiled code can call this function."""
    return isinstance(function, numba.core.dispatcher.Dispatcher)


@contextmanager
def compile_notice(what: str) -> Iterator[None]:
    """Say on the terminal that the compiler is at work, if it is for more than a second."""

    def say() -> None:
        print(f"rblspi: compiling {what} (once; later runs find it on disk) ...", file=sys.stderr)

    timer = threading.Timer(1.0, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Entry:
    """A compiled function entered from Python, for argument types that are declared.

    Declared types are what lets a jitted function be passed as a first-class function: left
    to itself, the compiler would specialise on every function passed, anew in every process.
    The first call compiles, or loads what an earlier process compiled.

    Parameters
    ----------
    function : callable
        The plain Python source.
    *argument_types : numba type
    what : str
        Named on the terminal while the compiler is at work.
    """

    def __init__(self, function: Callable[..., Any], *argument_types: Any, what: str) -> None:
        self.py_func = function
        self._argument_types = argument_types
        self._what = what
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run compiled."""
        if self._compiled is None:
            compiled: Any = jit(self.py_func)
            with compile_notice(self._what):
                compiled.compile(self._argument_types)
            compiled.disable_compile()
            self._compiled = compiled
        return self._compiled(*arguments)
