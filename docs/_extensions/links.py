"""Links: names in docstrings, and files outside of this folder.

A name in backquotes leads to its page. One that is not public stays code, but has to exist.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.util.nodes import make_refnode

ROOT = Path(__file__).parents[2]
#: files outside of this folder that are pages too
PAGES = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changelog.md"}


def resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    """The page of a name, by its last words; the name itself where it is not public."""
    if node.get("reftype") != "obj":
        return None
    target, objects = node["reftarget"], env.domains["py"].objects
    found = [name for name in objects if f".{name}".endswith(f".{target}")]
    if found:
        name = min(found, key=len)
        entry = objects[name]
        where = (node["refdoc"], entry.docname, entry.node_id)
        return make_refnode(app.builder, *where, content, name)
    return content if target.rpartition(".")[2] in _names() else None


@cache
def _names() -> set[str]:
    """All names that are defined anywhere in the source."""
    names: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        names.update((file.stem, file.parent.name))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
    return names


def read(app: Any, page: str, source: list[str]) -> None:
    """Let links to files of the repository that are pages lead to those pages."""
    up = "../" * page.count("/")
    for file, target in PAGES.items():
        source[0] = source[0].replace(f"({up}{file}", f"({up}{target}")


def setup(app: Any) -> dict[str, bool]:
    """Connect both."""
    app.connect("missing-reference", resolve)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
