"""The numbers that the paper states, beside those in the documentation."""

import json
import shutil

from rblspi_paper.stated import STATED, write_numbers
from tests.support.pages import DOCS

PAPER = DOCS / "paper"


def test_every_stated_number_stands_beside_a_measured_one(tmp_path):
    shutil.copy(PAPER / "claims.json", tmp_path)
    page = write_numbers(tmp_path).read_text(encoding="utf-8")
    for stated in STATED:
        assert f"| {stated.what}" in page
    assert page == (PAPER / "numbers.md").read_text(encoding="utf-8")


def test_what_is_not_judged_is_left_out(tmp_path):
    content = json.loads((PAPER / "claims.json").read_text(encoding="utf-8"))
    content["claims"] = [claim for claim in content["claims"] if claim["figure"] == "cart-pole"]
    (tmp_path / "claims.json").write_text(json.dumps(content), encoding="utf-8")
    rows = write_numbers(tmp_path).read_text(encoding="utf-8").splitlines()[6:]
    assert [row[:2] for row in rows].count("| ") == 1
    assert rows[0].startswith("| cart pole, steps, best setting (α = 0.01, β = 0.1) | above 480 |")
