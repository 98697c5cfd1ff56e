"""What the documentation says about the paper agrees with the files that commands wrote."""

import json
import re
from collections import Counter

import pytest

from rblspi.reproduction.claims import CLAIMS
from rblspi.reproduction.design import SMALL
from tests.support.pages import DOCS

PAPER = DOCS / "paper"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
WORDS += ("eleven", "twelve")


def read(name):
    return json.loads((PAPER / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", PAPER / "README.md"], ids=str)
def test_pages_count_verdicts_as_they_are(page):
    number = Counter(claim["verdict"] for claim in read("claims.json")["claims"])
    text = re.sub(r"[\s*]+", " ", page.read_text(encoding="utf-8"))
    assert f"{WORDS[number['holds']]} hold" in text
    assert f"{WORDS[number['does not hold']]} do not" in text
    undecided = number["undecided"]
    assert f"{WORDS[undecided]} {'is' if undecided == 1 else 'are'} undecided" in text


def test_every_claim_is_judged_and_those_of_the_design_under_every_reading():
    claims = {claim["id"]: claim for claim in read("claims.json")["claims"]}
    assert list(claims) == [claim.id for claim in CLAIMS]
    studied = {claim["id"]: claim for claim in read("readings.json")["claims"]}
    assert list(studied) == [claim.id for claim in SMALL.judged()]
    for name, claim in studied.items():
        verdicts = {cell["reading"]: cell["verdict"] for cell in claim["readings"]}
        assert claims[name]["readings"] == verdicts
        assert None not in verdicts.values()


def test_all_runs_were_made_with_the_same_versions():
    assert len(read("claims.json")["versions"]) == len(read("readings.json")["versions"]) == 1
