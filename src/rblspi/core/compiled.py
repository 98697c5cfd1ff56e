"""How this library compiles, and the types of the functions that compiled code takes.

Compiled code receives an environment and a basis as *first-class functions*: values of a
declared signature. The interaction loop is therefore compiled once for every kind of agent,
cached on disk, and serves every environment and basis, a user's own included.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from rblspi.core.code_cache import CodeCache
from rblspi.core.deferred_signals import defer_while_compiling
from rblspi.core.progress import say

Function = TypeVar("Function", bound=Callable[..., Any])

FLOAT = types.float64
INT = types.int64
BOOL = types.boolean
VECTOR = types.Array(types.float64, 1, "C")
MATRIX = types.Array(types.float64, 2, "C")
MASK = types.Array(types.uint8, 1, "C")
GENERATOR = numba.typeof(np.random.default_rng(0))

#: reset(parameters, state, rng): write a first state into ``state``.
RESET = types.void(VECTOR, VECTOR, GENERATOR)
#: step(parameters, state, action, rng) -> (reward, terminated, truncated): advance ``state``.
STEP = types.Tuple((FLOAT, BOOL, BOOL))(VECTOR, VECTOR, INT, GENERATOR)
#: features(parameters, observation, out): write phi(observation) into ``out``.
FEATURES = types.void(VECTOR, VECTOR, VECTOR)

defer_while_compiling()


def function_type(signature: Any) -> types.FunctionType:
    """Type of an argument that is a compiled function with this signature."""
    return types.FunctionType(signature)


def jit(function: Function, *, counting: bool = True, **options: Any) -> Function:
    """Compile on first use, cache on disk, run without the interpreter lock.

    Division by zero follows IEEE 754, as in NumPy. The plain function is ``.py_func``. Every
    function states whether it counts references (see `jit_borrowing`, the option is private to
    Numba) and whether it is always inlined. Otherwise it would inherit both options from its first
    caller, and every function that an agent calls would be compiled into its loop.
    """
    stated = {"forceinline": False, "_nrt": counting, **options}
    compiled: Function = numba.njit(nogil=True, error_model="numpy", **stated)(function)
    if is_compiled(compiled):  # it is not with NUMBA_DISABLE_JIT=1
        compiled._cache = CodeCache(function)  # type: ignore[attr-defined]
    return compiled


def jit_borrowing(function: Function, **options: Any) -> Function:
    """`jit` for code that uses only its caller's arrays, and therefore counts no references.

    Reference counting is atomic, and happens each time an array is taken out of a tuple or
    sliced. Code without it cannot allocate an array, and Python must not call it with a random
    generator, which would never be released.
    """
    return jit(function, counting=False, **options)


def jit_inlined(function: Function) -> Function:
    """`jit_borrowing`, inlined into its caller, which saves passing a large tuple."""
    return jit_borrowing(function, forceinline=True)


def is_compiled(function: object) -> bool:
    """Whether compiled code can call this function."""
    return isinstance(function, numba.core.dispatcher.Dispatcher)


@contextmanager
def compile_notice(what: str) -> Iterator[None]:
    """Say on the terminal, once, that the compiler is at work, if it takes more than a second."""
    message = f"compiling {what} (once; later runs find it on disk) ..."
    timer = threading.Timer(1.0, _say_once, (message,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@cache
def _say_once(message: str) -> None:
    say(message)


class Entry:
    """A compiled function that Python calls, with declared argument types.

    Because the types are declared, a jitted function can be passed as a first-class function.
    Left to itself, the compiler would specialise on every function passed, in every process
    anew. The first call compiles, or loads what an earlier process compiled.

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
