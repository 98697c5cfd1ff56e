import json
from dataclasses import replace

import numpy as np
import pytest

from rblspi.experiments.definitions import unique
from rblspi.experiments.results import CurveResult, FigureResult
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from rblspi.reproduction import readings_report
from rblspi.reproduction.claims import CLAIMS, Scope, claims_within
from rblspi.reproduction.design import FULL, SMALL, Design, needed_by
from rblspi.reproduction.figures import FIGURES
from rblspi.reproduction.readings import DEFAULT, name_of, parse
from rblspi.reproduction.readings_report import in_words, read_study, write_study
from tests.support.experiments import one_thread, records

EVERYTHING = {c.digest for f in FIGURES.values() for c in f.curves}


def test_claims_ask_for_all_curves_of_the_paper_and_for_no_others():
    asked = {curve.digest for claim in CLAIMS for curve in needed_by(claim)}
    assert asked == EVERYTHING
    assert {curve.digest for curve in FULL.curves(DEFAULT)} == EVERYTHING


def test_a_smaller_scope_asks_for_less_and_keeps_its_numbers():
    whole = {claim.id: claim for claim in CLAIMS}
    for claim in claims_within(SMALL.scope):
        asked = {curve.digest for curve in needed_by(claim)}
        assert asked <= {curve.digest for curve in needed_by(whole[claim.id])}
        assert claim.judged_by == whole[claim.id].judged_by
    assert claims_within(Scope())[0].id == CLAIMS[0].id


def test_runs_are_shared_where_a_reading_changes_nothing():
    """Higher values of alpha add one to the three, or four, that there are."""
    higher, default = (
        {c.digest for c in SMALL.curves(reading)} for reading in (parse(["alphas=higher"]), DEFAULT)
    )
    online = [c for c in SMALL.curves(DEFAULT) if c.algorithm == "rblspi"]
    alphas = {c.settings["prior_precision"] for c in online}
    assert len(higher - default) < len(default) / len(alphas)
    total = sum(len(figure.curves) for figure, _ in SMALL.parts)
    assert total < sum(len(SMALL.curves(reading)) for reading in SMALL.readings)
    assert total == len(unique(c for figure, _ in SMALL.parts for c in figure.curves))


def test_a_reading_affects_the_claims_about_its_domain():
    def affected(text):
        return {c.id for c in SMALL.judged if SMALL.affects(parse([text]), c)}

    assert affected("pole-force=1") == {"pole-2"}
    assert affected("integration=euler") == {"pendulum-2", "pendulum-3", "pendulum-4"}
    assert affected("epsilon=slow") == {"pendulum-4", "pole-2", "puddle-1"}
    assert affected("chain-ratio=1") == {"chain-1", "chain-2"}


POLE = replace(
    SMALL,
    claims=("pole-2",),
    readings=(DEFAULT, *map(parse, [["pole-force=1"], ["epsilon=slow"], ["integration=euler"]])),
)


@pytest.fixture
def invented(monkeypatch):
    """With a force of 1 newton beta = 0.1 is better than 1, otherwise worse; seeds 0 to 9."""

    def read(_store, figure, runs):
        def result(curve):
            steps = 200.0 + 100.0 * (curve.algorithm == "rblspi")
            if curve.settings.get("noise_precision") == 0.1:
                steps += 50.0 if curve.arguments else -50.0
            noise = np.random.default_rng(1).normal(size=(runs, 1))
            arrays = {n: steps + noise + np.zeros((runs, 300)) for n in ("length", "return")}
            return CurveResult(curve, records(range(runs)), arrays, (), True)

        return FigureResult(figure, [result(curve) for curve in figure.curves])

    monkeypatch.setattr(readings_report, "read", read)
    return read_study(None, POLE)


def test_a_claim_is_judged_under_every_reading_that_changes_something(invented):
    assert invented.verdicts("pole-2") == {
        "default": "does not hold",
        "pole-force=1": "holds",
        "epsilon=slow": "does not hold",
    }
    assert "holds under pole-force=1; does not hold under default, epsilon=slow" in "".join(
        invented.sentences()
    )


def test_what_moves_a_claim_most_comes_first(invented):
    largest, *_ = invented.shifts("pole-2")
    assert name_of(largest.reading) == "pole-force=1"
    assert largest.by.mean == pytest.approx(100.0)
    assert largest.by.low > 90.0


def test_the_page_the_data_and_the_figure_are_written(invented, tmp_path):
    page = write_study(invented, tmp_path).read_text(encoding="utf-8")
    assert "holds under pole-force=1" in page
    assert (tmp_path / "figures" / "readings.png").exists()
    content = json.loads((tmp_path / "readings.json").read_text(encoding="utf-8"))
    (claim,) = content["claims"]
    verdicts = {cell["reading"]: cell["verdict"] for cell in claim["readings"]}
    assert verdicts == invented.verdicts("pole-2")
    assert all(cell["runs"] == 10 for cell in claim["readings"])
    assert content["factors"][0]["levels"][0]["source"]


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ({}, "no runs yet"),
        ({"default": "holds", "a=b": "holds"}, "holds under every reading (2)"),
        ({"default": "does not hold"}, "holds under no reading (1)"),
        ({"default": "undecided", "a=b": "holds"}, "holds under a=b; undecided under default"),
    ],
)
def test_verdicts_in_words(verdicts, words):
    assert in_words(verdicts) == words


@pytest.mark.slow
def test_a_study_of_real_runs_goes_on_where_it_was_stopped(tmp_path):
    """Two sample sets of the chain, then three."""
    readings = (DEFAULT, parse(["chain-basis=whole"]))
    design = Design(("chain-1",), runs=1, readings=readings)
    ((figure, _),) = design.parts
    with Store(tmp_path / "results.sqlite") as store:
        assert read_study(store, design).verdicts("chain-1") == {}
        for runs, new in ((2, 8), (3, 4)):
            todo = missing(store, figure.curves, runs, at_once=1)
            assert len(todo) == new
            assert [run.seed for run in todo] == sorted(run.seed for run in todo)
            run_all(todo, store, one_thread, 1)
        study = read_study(store, design)
    assert [cell.runs for cell in study.cells["chain-1"]] == [3, 3]
    assert set(study.verdicts("chain-1")) == {"default", "chain-basis=whole"}
