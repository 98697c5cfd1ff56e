import json
import re
import shutil

import numpy as np
import pytest

from rblspi_paper import chain
from rblspi_paper.figures import FIGURES, quick
from rblspi_paper.report import judgements_on, write_report
from tests.support import browser
from tests.support.experiments import VERSIONS, invented
from tests.support.pages import DOCS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The whole paper, from invented runs."""
    folder = tmp_path_factory.mktemp("report")
    figures = [invented(quick(figure)) for figure in FIGURES.values()]
    shutil.copy(DOCS / "paper" / "readings.json", folder)
    return write_report(figures, folder)


def test_every_figure_is_there_as_png_and_svg(report):
    found = {path.name for path in (report.page.parent / "figures").iterdir()}
    assert found == {f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")}


def test_claims_are_there_for_people_and_for_programs(report):
    content = json.loads((report.page.parent / "claims.json").read_text(encoding="utf-8"))
    assert len(content["claims"]) == 20
    by_reading = {claim["id"]: claim["readings"] for claim in content["claims"]}
    assert by_reading["car-5"]["default"] == "does not hold"
    assert by_reading["car-1"] == {}
    assert content["versions"] == [VERSIONS]
    table = (report.page.parent / "claims.md").read_text(encoding="utf-8")
    page = report.page.read_text(encoding="utf-8")
    for claim in content["claims"]:
        assert f"| {claim['id']} |" in table
        assert f'id="claim-{claim["id"]}"' in page


def test_the_page_says_of_readings_what_their_own_page_says(report):
    page = report.page.read_text(encoding="utf-8")
    content = json.loads((report.page.parent / "readings.json").read_text(encoding="utf-8"))
    for claim in content["claims"]:
        assert claim["summary"] in page


def test_claims_that_compare_settings_are_also_judged_by_the_end_of_the_runs(report):
    content = json.loads((report.page.parent / "claims.json").read_text(encoding="utf-8"))
    usual = {claim["id"]: claim["judged_by"] for claim in content["claims"]}
    ((title, judged),) = content["variants"].items()
    assert {claim["id"] for claim in judged} == {
        *("car-2", "car-4", "car-5", "car-6", "sparse-3", "pendulum-2", "pole-2", "puddle-3")
    }
    for claim in judged:
        assert "verall" in usual[claim["id"]]
        assert "verall" not in claim["judged_by"]
        assert not any("overall" in finding["what"] for finding in claim["findings"])
    assert f"## {title}" in (report.page.parent / "claims.md").read_text(encoding="utf-8")
    assert title in report.page.read_text(encoding="utf-8")


def test_equal_runs_give_equal_files(report, tmp_path):
    again = write_report([invented(quick(FIGURES["cart-pole"]))], tmp_path)
    for name in ("cart-pole.png", "cart-pole.svg"):
        first = (report.page.parent / "figures" / name).read_bytes()
        assert (again.page.parent / "figures" / name).read_bytes() == first


def test_the_page_holds_everything_it_shows(report):
    page = report.page.read_text(encoding="utf-8")
    assert page.count("<img") == page.count('src="data:image/svg+xml;base64,') == len(FIGURES)
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_short_runs_decide_the_claims_that_need_no_longer_ones():
    verdicts = {
        judgement.claim.id: judgement
        for figure in FIGURES.values()
        for judgement in judgements_on([invented(quick(figure), runs=40)])
    }
    decided = {name for name, judgement in verdicts.items() if judgement.verdict != "undecided"}
    assert decided == {"chain-1", "chain-2", "pendulum-3"}
    assert "needs runs of 1500 episodes, these have 200" in verdicts["car-1"].note


def test_a_figure_without_runs_is_shown_as_such(tmp_path):
    empty = [invented(FIGURES[name], runs=0) for name in ("cart-pole", "chain")]
    page = write_report(empty, tmp_path).page.read_text(encoding="utf-8")
    assert "no runs yet" in page


def test_the_chain_s_values_are_beside_exact_ones():
    result = invented(FIGURES["chain"])
    curve = next(iter(result.curves.values()))
    history = chain.iterations(curve)
    np.testing.assert_array_equal(history[0].evaluated, np.zeros(20))
    np.testing.assert_array_equal(history[1].evaluated, history[0].improved)
    np.testing.assert_allclose(history[0].exact[0], 9.02262355864218)  # the paper's figure
    np.testing.assert_array_equal(history[0].estimated, curve.tables[0][0].max(axis=1))


@pytest.mark.skipif(browser.find() is None, reason="no Chromium on this machine: install chromium")
def test_a_browser_shows_all_figures_and_the_table_and_asks_for_nothing(report):
    with browser.page() as page:
        page.open(report.page.as_uri())
        widths = page.evaluate("[...document.images].map(i => i.complete ? i.naturalWidth : 0)")
        rows = page.evaluate('document.querySelectorAll("tr[id^=claim-]").length')
        visible = page.evaluate(
            "[...document.images].every(i => i.getBoundingClientRect().width > 300)"
        )
        spills = page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
    assert len(widths) == len(FIGURES)
    assert min(widths) > 300
    assert visible
    assert rows == 20
    assert not spills
    asked = [request["request"]["url"] for request in page.told("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == [report.page.as_uri()]
    for complaint in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
        assert page.told(complaint) == []
