"""Atomic replacement of files, and folders that only one process at a time writes to."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from rblspi.core.progress import say

try:
    import fcntl
except ImportError:  # Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield a temporary name in the same folder; the file gets its own name in the end.

    The new content is flushed to disk before it replaces the old file. A link is kept, and the file
    that it points to is replaced. If anything goes wrong, the temporary file is removed and the old
    one stays as it was.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a file that could be replaced: choose another name")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno is None or str(path) in str(error):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a text in UTF-8, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create a folder if necessary, and be the only process that writes there.

    The operating system locks the folder itself: no lock file is left behind, and the lock ends
    with the process, even after a crash.

    Raises
    ------
    ValueError
        If another process has the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, folder)
        yield
    finally:
        os.close(handle)


def lock(handle: int, path: Path) -> None:
    """Lock an open file or folder until it is closed; see `locked`."""
    if fcntl is None:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ValueError(
            f"another process is writing to {path}: wait for it, or choose another name"
        ) from error
    except OSError as error:  # some network file systems have no locks
        say(f"{path} cannot be locked ({error.strerror}): let no other process write to it")
