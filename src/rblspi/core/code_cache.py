"""The cache of compiled code on disk, which never returns stale or damaged code.

A cached function does not notice that a function it calls, in another file, has changed.
The cache directory is therefore named after a digest of every file that holds compiled code.
Every file in it begins with a digest of its content, and compiled code is stored with the signature
that it belongs to. Code that fails one of these checks is compiled again.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from rblspi.core.progress import say

#: bytes that the cache may need: less free space counts as a full disk
CACHE_SIZE = 100 * 2**20


class CodeCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, in files with checksums."""

    def __init__(self, function: Callable[..., Any]) -> None:
        with _cached_here():
            super().__init__(function)
        self._cache_file = _CheckedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """An index from signatures to files of compiled code; a damaged one counts as missing."""

    def save(self, key: Any, data: Any) -> None:
        """Store compiled code; another process may write the same file at the same time."""
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """The compiled code of a signature, or None."""
        found, data = super().load(key) or (None, None)
        return data if found == key else None

    def _load_index(self) -> Any:
        return self._read(self._index_path) or {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, value: Any) -> None:
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(self._digest(content) + content)

    def _read(self, path: str) -> Any:
        try:
            whole = Path(path).read_bytes()
        except FileNotFoundError:
            return None
        size = hashlib.sha256().digest_size
        digest, content = whole[:size], whole[size:]
        return pickle.loads(content) if digest == self._digest(content) else None

    def _digest(self, content: bytes) -> bytes:
        """Digest of the content, the version of Numba, and the source that was compiled."""
        origin = repr((self._version, self._source_stamp)).encode()
        return hashlib.sha256(origin + content).digest()


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
    """Why nothing can be cached in a directory."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"x")
        if (free := shutil.disk_usage(directory).free) < CACHE_SIZE:
            return f"only {free / 1e6:.0f} MB are free"
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
