"""Code in the documentation runs: Python and shell blocks of every page, one after the other."""

import pytest

from tests.support.command import require_valid
from tests.support.pages import PAGES, blocks, commands, name, run_script, script

#: its blocks are parts of a file that tests/examples/test_skeleton.py runs
QUOTES = "docs/adding-an-algorithm.md"
RUNNABLE = [
    page
    for page in PAGES
    if name(page) != QUOTES and any(block.language in ("python", "sh") for block in blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE, ids=name)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    program = tmp_path / "page.py"
    program.write_text(script(page), encoding="utf-8")
    run_script(program, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=name)
def test_commands_have_the_options_that_pages_give_them(page):
    for words in commands(page):
        if "--help" not in words:
            require_valid(words)
