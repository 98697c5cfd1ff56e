"""Another package that registers an algorithm: a folder with two modules and an entry point."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager

from rblspi import registry

MODULES = {
    "__init__.py": """
from rblspi.registry import Algorithm

ALGORITHM = Algorithm("other", "other_package.agent:Other", "online", "Other", baseline=True)
""",
    "agent.py": """
from rblspi import RBLSPI

from .numbers import PRECISION


class Other(RBLSPI):
    def __init__(self, env, basis=None, *, seed=None, **settings):
        super().__init__(env, basis, noise_precision=PRECISION, seed=seed, **settings)
""",
    "numbers.py": "PRECISION = 0.5\n",
    "pictures.py": "COLOUR = 'blue'\n",
}
ENTRY_POINTS = "[rblspi.algorithms]\nother = other_package:ALGORITHM\n"


@contextmanager
def installed(folder):
    """Install the package in an empty folder; yields the folder of its modules."""
    package, metadata = folder / "other_package", folder / "other_package-1.0.dist-info"
    for made in (package, metadata):
        made.mkdir()
    for name, source in MODULES.items():
        (package / name).write_text(source, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.insert(0, str(folder))
    _forget()
    try:
        yield package
    finally:
        sys.path.remove(str(folder))
        _forget()


def _forget():
    """Let modules and entry points be looked up again."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "other_package"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    registry.algorithms.cache_clear()
