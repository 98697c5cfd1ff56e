"""How this library compiles, and the types of the functions that compiled code takes.

Compiled code receives an environment and a basis as *first-class functions*: values of a
declared signature. The interaction loop is therefore compiled once for every kind of agent,
cached on disk, and serves every environment and basis, a user's own included.

A cached function does not notice that a function it calls, in another file, has changed.
The cache directory is therefore named after a digest of every file that holds compiled code.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import types

from rblspi.core.deferred_signals import defer_signals
from rblspi.core.progress import say

Function = TypeVar("Function", bound=Callable[..., Any])

#: bytes that the cache may need: less free space counts as a full disk
CACHE_SIZE = 100 * 2**20

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

defer_signals()


def function_type(signature: Any) -> types.FunctionType:
    """Type of an argument that is a compiled function with this signature."""
    return types.FunctionType(signature)


@cache
def cache_directory() -> Path:
    """Where compiled code is cached: named after the sources it was compiled from.

    A temporary directory takes its place, with a notice, if it cannot be written to.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parents[1].rglob("*.py")):
        text = source.read_bytes()
        if b"@jit" in text or b"@intrinsic" in text:
            digest.update(text)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    root = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(home, "rblspi")
    directory = Path(root) / digest.hexdigest()[:16]
    problem = _problem_with(directory)
    if problem is None:
        return directory
    temporary = Path(tempfile.mkdtemp(prefix="rblspi-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    say(f"compiled code cannot be cached in {directory} ({problem}): this process compiles anew")
    return temporary


def _problem_with(directory: Path) -> str | None:
    """Why nothing can be cached in a directory; files that a crash left empty are removed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x")
        if (free := shutil.disk_usage(directory).free) < CACHE_SIZE:
            return f"only {free / 1e6:.0f} MB are free"
        for file_path in directory.rglob("*.nb?"):
            if file_path.stat().st_size == 0:
                file_path.unlink()
    except OSError as error:
        return str(error.strerror or error)
    return None


@contextmanager
def _cached_here() -> Iterator[None]:
    """Numba asks for the cache directory when a function is decorated: answer only for ours.

    The directory can be written to; otherwise Numba would fall back to one beside the source,
    whose name does not change with the source.
    """
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_directory())
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def jit(function: Function, *, counting: bool = True, **options: Any) -> Function:
    """Compile on first use, cache on disk, run without the interpreter lock.

    Division by zero follows IEEE 754, as in NumPy. The plain function is ``.py_func``. Every
    function states whether it counts references (see `jit_borrowing`); otherwise it would
    inherit that from whichever function calls it first. The option is private to Numba.
    """
    with _cached_here():
        compiled: Function = numba.njit(
            cache=True, nogil=True, error_model="numpy", _nrt=counting, **options
        )(function)
    return compiled


def jit_borrowing(function: Function, **options: Any) -> Function:
    """As `jit`, for code that only works on its caller's arrays and so counts no references.

    Reference counting is atomic, and happens each time an array is taken out of a tuple or
    sliced. Code without it cannot allocate an array, and Python must not call it with a random
    generator, which would never be released.
    """
    return jit(function, counting=False, **options)


def jit_inlined(function: Function) -> Function:
    """As `jit_borrowing`, and inlined into its caller, which saves passing a large tuple."""
    return jit_borrowing(function, forceinline=True)


def is_compiled(function: object) -> bool:
    """Whether compiled code can call this function."""
    return isinstance(function, numba.core.dispatcher.Dispatcher)


@contextmanager
def compile_notice(what: str) -> Iterator[None]:
    """Say on the terminal that the compiler is at work, if it takes more than a second."""
    message = f"compiling {what} (once; later runs find it on disk) ..."
    timer = threading.Timer(1.0, say, (message,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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
