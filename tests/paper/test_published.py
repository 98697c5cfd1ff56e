"""What the documentation says about the paper agrees with the files that commands wrote."""

import json
import re
import shutil
from collections import Counter

import numpy as np
import pytest

from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store
from rblspi.experiments.tables import read_runs
from rblspi_paper.claims import CLAIMS
from rblspi_paper.figures import FIGURES
from rblspi_paper.report import judgements_on
from rblspi_paper.stated import STATED, write_numbers
from tests.support.pages import DOCS

PAPER = DOCS / "paper"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
WORDS += ("eleven", "twelve")


def published_file(name):
    return json.loads((PAPER / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", PAPER / "README.md"], ids=str)
def test_pages_count_verdicts_as_they_are(page):
    number = Counter(claim["verdict"] for claim in published_file("claims.json")["claims"])
    text = re.sub(r"[\s*]+", " ", page.read_text(encoding="utf-8"))
    assert f"{WORDS[number['holds']]} hold" in text
    assert f"{WORDS[number['does not hold']]} do not" in text
    undecided = number["undecided"]
    assert f"{WORDS[undecided]} {'is' if undecided == 1 else 'are'} undecided" in text


def test_every_claim_is_judged_with_the_verdicts_of_the_study_of_readings():
    claims = {claim["id"]: claim for claim in published_file("claims.json")["claims"]}
    assert list(claims) == [claim.id for claim in CLAIMS]
    studied = {claim["id"]: claim for claim in published_file("readings.json")["claims"]}
    for name, claim in studied.items():
        verdicts = {cell["reading"]: cell["verdict"] for cell in claim["readings"]}
        assert claims[name]["readings"] == verdicts
        assert None not in verdicts.values()


@pytest.mark.slow
def test_verdicts_follow_from_the_published_runs(tmp_path):
    """The table of runs gives every number of claims.json but those of the chain."""
    figures = [figure for figure in FIGURES.values() if figure.id != "chain"]
    with Store(tmp_path / "results.sqlite") as store:
        store.add(read_runs(PAPER / "blocks.jsonl.gz"))
        results = [read(store, figure) for figure in figures]
    found = {judgement.claim.id: judgement.plain for judgement in judgements_on(results)}
    published = {claim["id"]: claim for claim in published_file("claims.json")["claims"]}
    assert len(found) == len(CLAIMS) - 2
    for name, claim in found.items():
        assert claim["verdict"] == published[name]["verdict"]
        for one, other in zip(claim["findings"], published[name]["findings"], strict=True):
            numbers = ([f["mean"], *f["interval"], f["runs"]] for f in (one, other))
            np.testing.assert_allclose(*numbers, rtol=2e-5)


def test_all_runs_were_made_with_the_same_versions():
    assert (
        len(published_file("claims.json")["versions"])
        == len(published_file("readings.json")["versions"])
        == 1
    )


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
