import json
from dataclasses import replace

import numpy as np
import pytest

from rblspi.core.intervals import Interval
from rblspi.experiments.judging import counted, in_words
from rblspi.experiments.results import SERIES, CurveResult, FigureResult
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from rblspi.reproduction import study as study_module
from rblspi.reproduction.design import SMALL, Design, parts
from rblspi.reproduction.readings import DEFAULT, SOURCES, name_of, parse
from rblspi.reproduction.readings_page import write_study
from rblspi.reproduction.study import Shift, follow_ups, interaction, read_study
from tests.support.experiments import one_thread, records

POLE = replace(
    SMALL,
    claims=("pole-2",),
    readings=(DEFAULT, *map(parse, [["pole-force=1"], ["epsilon=slow"], ["integration=euler"]])),
)


@pytest.fixture
def read_invented(monkeypatch):
    """Reads studies of invented runs, whose steps are given by curve; seeds 0 to 9."""

    def read(steps, design):
        def result(curve, runs):
            noise = np.random.default_rng(1).normal(size=(runs, 1))
            arrays = {n: steps(curve) + noise + np.zeros((runs, curve.episodes)) for n in SERIES}
            return CurveResult(curve, records(range(runs)), arrays, (), True)

        def figure_result(_store, figure, runs):
            return FigureResult(figure, [result(curve, runs) for curve in figure.curves])

        monkeypatch.setattr(study_module, "read", figure_result)
        return read_study(None, design)

    return read


@pytest.fixture
def invented(read_invented):
    """With a force of 1 newton beta = 0.1 is better than 1, otherwise worse."""

    def steps(curve):
        better = 50.0 if curve.arguments else -50.0
        ours = 100.0 + better * (curve.settings.get("noise_precision") == 0.1)
        return 200.0 + ours * (curve.algorithm == "rblspi")

    return read_invented(steps, POLE)


def test_a_claim_is_judged_under_every_reading_that_changes_something(invented):
    assert invented.verdicts("pole-2") == {
        "default": "does not hold",
        "pole-force=1": "holds",
        "epsilon=slow": "does not hold",
    }
    assert "holds under pole-force=1; does not hold under default, epsilon=slow" in "".join(
        invented.sentences()
    )


def test_a_claim_may_hold_by_the_end_of_the_runs_alone(read_invented):
    """beta = 0.1 is worse for 150 episodes and then better, by less."""

    def steps(curve):
        better = np.where(np.arange(curve.episodes) < 150, -50.0, 10.0)
        ours = 100.0 + better * (curve.settings.get("noise_precision") == 0.1)
        return 200.0 + ours * (curve.algorithm == "rblspi")

    final = parse(["performance=final"])
    study = read_invented(steps, replace(POLE, readings=(DEFAULT, final)))
    assert study.verdicts("pole-2") == {"default": "does not hold", "performance=final": "holds"}
    assert len(parts([study.design])[0][0].curves) == len(study.design.curves(DEFAULT))
    other = read_invented(steps, replace(POLE, claims=("pendulum-4",), readings=(DEFAULT, final)))
    assert list(other.verdicts("pendulum-4")) == ["default"]  # its rule names the end of the runs


def test_what_moves_a_claim_most_comes_first(invented):
    largest, *_ = invented.shifts("pole-2")
    assert name_of(largest.reading) == "pole-force=1"
    assert largest.by.mean == pytest.approx(100.0)
    assert largest.by.low > 90.0


FOUR = {"pole-force": "1", "ridge": "1e-3", "count": "from-zero", "limit": "ends"}


@pytest.fixture
def moved_by_five(read_invented):
    """Five changes add 10 to 50 steps for beta = 0.1, and two of them 15 more together."""

    def steps(curve):
        if curve.algorithm != "rblspi" or curve.settings["noise_precision"] != 0.1:
            return 200.0
        settings = curve.settings
        force, ridge = bool(curve.arguments), "ridge" in settings
        count, limit = "first_update" in settings, "limit_ends" in settings
        edge = "centres" in curve.basis
        total = 50 * force + 40 * ridge + 30 * count + 20 * limit + 10 * edge
        return 200.0 + total + 15.0 * (force and count)

    singles = [[f"{name}={level}"] for name, level in FOUR.items()]
    readings = (DEFAULT, *map(parse, [["centres=edge"], *singles, ["alphas=lower"]]))
    return read_invented(steps, replace(SMALL, claims=("pole-2",), readings=readings))


def test_half_of_the_combinations_of_the_four_strongest_factors_follow(moved_by_five):
    (design,) = follow_ups(moved_by_five)
    assert [dict(r) for r in design.readings[:5]] == [
        DEFAULT,
        *(parse([f"{name}={level}"]) for name, level in FOUR.items()),
    ]
    assert [len(reading) for reading in design.readings] == [0, *[1] * 4, *[2] * 6, 4]
    assert len({name_of(reading) for reading in design.readings}) == 12


def test_a_claim_that_one_factor_moves_has_no_combinations(invented):
    assert follow_ups(invented) == []


def test_an_interaction_is_what_two_changes_do_beyond_their_sum(moved_by_five):
    (combined,) = moved_by_five.combined
    pairs = [reading for reading in combined.design.readings if len(reading) == 2]
    for pair in pairs:
        joint = interaction(combined, "pole-2", pair, 0)
        expected = 15.0 if set(pair) == {"pole-force", "count"} else 0.0
        assert joint.mean == pytest.approx(expected, abs=1e-9)
        assert joint.low < joint.mean < joint.high


def test_combinations_are_on_the_page_in_the_data_and_in_a_figure(moved_by_five, tmp_path):
    page = write_study(moved_by_five, tmp_path).read_text(encoding="utf-8")
    assert page.count("pole-force=1 + count=from-zero | holds |") == 1
    assert (tmp_path / "figures" / "combinations.png").exists()
    content = json.loads((tmp_path / "readings.json").read_text(encoding="utf-8"))
    names = [cell["reading"] for cell in content["claims"][0]["readings"]]
    assert len(names) == len(set(names)) == 7 + 7
    assert set(moved_by_five.verdicts("pole-2")) == set(names)


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
        ({}, "too few runs"),
        ({"default": "holds", "a=b": "holds"}, "holds under every reading (2)"),
        ({"default": "does not hold"}, "does not hold under default; too few runs under 1 more"),
        ({"default": "undecided", "a=b": "holds"}, "holds under a=b; undecided under default"),
    ],
)
def test_verdicts_in_words(verdicts, words):
    assert in_words(verdicts, 2) == words


@pytest.mark.parametrize(
    ("by", "among", "size"),
    [
        (Interval(2.0, 1.0, 3.0), 1, 2.0),
        (Interval(-2.0, -3.0, -1.0), 1, 2.0),
        (Interval(60.0, -30.0, 71.0), 1, 60 / 90),  # the end nearer to 0 counts
        (Interval(0.0, 0.0, 0.0), 1, 0.0),
        (Interval(5.0, 5.0, 5.0), 1, np.inf),
        (Interval(5.0, np.nan, np.nan), 1, 0.0),
        # Bonferroni for ten numbers, by Student's distribution with nine degrees of freedom
        (Interval(2.0, 1.0, 3.0), 10, 2.0 * 2.262157 / 3.689662),
    ],
)
def test_the_size_of_a_shift_is_above_one_where_it_is_clear(by, among, size):
    assert Shift(DEFAULT, 0, "", by, among, 10).size == pytest.approx(size, rel=1e-6)


def test_findings_name_what_was_run(read_invented):
    design = replace(SMALL, claims=("car-4",), readings=(DEFAULT, parse(["alphas=lower"])))
    study = read_invented(lambda curve: 200.0, design)
    names = [[f.what for f in cell.judgement.findings] for cell in study.cells["car-4"]]
    assert "α = 0.001 minus α = 1" in names[0][0]
    assert "α = 0.0001 minus α = 0.1" in names[1][0]


def test_a_cell_without_findings_has_no_verdict_and_no_shift(read_invented):
    study = read_invented(lambda curve: 200.0, POLE)
    default, other, *_ = study.cells["pole-2"]
    empty = other._replace(judgement=other.judgement._replace(findings=()))
    assert empty.runs > 1
    assert empty.verdict is None
    assert replace(study, cells={"pole-2": (default, empty)}).shifts("pole-2") == []


def test_readings_that_come_to_the_same_are_counted_once(read_invented):
    """Lagoudakis and Parr have no cart pole, and the pole has no width of 1 in its units."""
    readings = (DEFAULT, parse(["pole-force=1"]), *map(SOURCES.get, SOURCES))
    study = read_invented(lambda curve: 200.0, replace(POLE, readings=readings))
    expected = ["default", "pole-force=1", "to-the-letter", "beliefbox", "busoniu"]
    assert list(study.verdicts("pole-2")) == expected
    twice = replace(POLE, readings=(*readings, parse(["pole-force=1", "width=unit"])))
    study = read_invented(lambda curve: 200.0, twice)
    assert list(study.verdicts("pole-2")) == expected


def test_verdicts_are_counted():
    verdicts = {"default": "undecided", "a=b": "holds", "a=c": "holds"}
    assert counted(verdicts) == "holds under 2, undecided under 1"
    words = in_words({"default": "holds"}, 1, verdicts)
    assert words == "holds under every reading (1); of combinations, " + counted(verdicts)


@pytest.mark.slow
def test_a_study_of_real_runs_goes_on_where_it_was_stopped(tmp_path):
    """Two sample sets of the chain, then three."""
    readings = (DEFAULT, parse(["chain-basis=whole"]))
    design = Design(("chain-1",), runs=1, readings=readings)
    ((figure, _),) = parts([design])
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
