"""What the site promises, without building it: names, links and pages are complete."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.pages import DOCS, PAGES, ROOT, name

PACKAGES = ("", ".data", ".features", ".offline", ".policies", ".rollout", ".serving")


def documented():
    """The full names in the API reference."""
    found, module = set(), ""
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   [\w.]+", line):
            found.add(f"{module}.{line.strip()}")
    return found


def test_every_public_name_is_in_the_reference():
    names = {full.rpartition(".")[2] for full in documented()}
    for package in PACKAGES:
        missing = set(import_module(f"rblspi{package}").__all__) - names
        assert not missing, f"docs/api.rst lacks names of rblspi{package}"


def test_every_name_in_the_reference_exists():
    for full in documented():
        module, _, attribute = full.rpartition(".")
        found = import_module(module)
        assert attribute in dir(found) or hasattr(found, attribute), full  # some need JAX


def test_every_page_is_in_the_contents():
    listed = {Path("index")}
    for page in DOCS.rglob("*.md"):
        for contents in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.S):
            folder = page.parent.relative_to(DOCS)
            listed |= {folder / line for line in contents.split() if not line.startswith(":")}
    pages = {page.relative_to(DOCS).with_suffix("") for page in PAGES if DOCS in page.parents}
    assert pages <= listed


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        if file.startswith("gallery/") or "/gallery/" in file:
            source = ROOT / "examples" / "gallery" / f"{Path(file).stem}.py"
            assert source.exists() or file.endswith("index.rst"), target
            continue
        generated = path.name == "commands.md"
        assert generated or path.exists(), target
        assert not anchor or anchor in _anchors(path), target


def _anchors(path):
    """The anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {words.replace(" ", "-") for words in plain}
