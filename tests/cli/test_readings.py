"""``rblspi readings``, ``rblspi list readings`` and ``rblspi reproduce --reading``."""

import json
from dataclasses import replace

import pytest

from rblspi.reproduction import design
from rblspi.reproduction.figures import CART_POLE
from rblspi.reproduction.readings import DEFAULT, FACTORS, parse
from tests.support.command import run
from tests.support.pages import DOCS

MINE = DOCS.parent / "examples" / "experiments" / "no_tuning.toml"


def output(capsys):
    return " ".join("".join(capsys.readouterr()).split())


def test_every_factor_is_listed_with_its_levels_and_sources(capsys):
    assert run("list", "readings") == 0
    listed = output(capsys)
    for factor in FACTORS.values():
        assert f"--reading {factor.name}=" in listed
        assert f"{factor.default.name} (default)" in listed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "chain", "--reading", "centers=edge"], "did you mean centres"),
        (["readings", "--claim", "chain-3"], "is no claim of this design"),
        (["reproduce", "--config", MINE, "--reading", "centres=edge"], "leave --config or"),
        (["readings", "--report-only"], "there is no"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(tmp_path, capsys, arguments, message):
    assert run(*arguments, "--out", tmp_path / "out") == 2
    assert message in output(capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_reading_of_the_paper_gets_a_report_of_its_own(tmp_path, capsys):
    options = ("--reading", "chain-basis=whole", "--runs", 1, "--jobs", 1, "--out", tmp_path)
    assert run("reproduce", "chain", *options) == 0
    folder = tmp_path / "chain-basis=whole"
    assert "chain-basis=whole" in (folder / "report.html").read_text(encoding="utf-8")
    assert "improvements until BLSPI" in (folder / "numbers.md").read_text(encoding="utf-8")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_a_study_is_run_reported_and_gone_on_with(tmp_path, capsys, monkeypatch):
    readings = (DEFAULT, *map(parse, [["chain-ratio=1"], ["chain-basis=whole"]]))
    small = replace(design.SMALL, claims=("chain-1", "pole-2"), readings=readings)
    monkeypatch.setattr(design, "SMALL", small)
    options = ("--runs", 1, "--jobs", 1, "--out", tmp_path)
    assert run("readings", "--claim", "chain-1", *options) == 0
    said = output(capsys)
    assert "pole-2 too few runs" in said
    assert "50 runs to make" in said  # ten sample sets, two algorithms, one of them in four ways
    content = json.loads((tmp_path / "readings.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in content["claims"]] == ["chain-1", "pole-2"]
    assert run("readings", "--claim", "chain-1", *options) == 0
    assert "all runs are there already" in output(capsys)
    assert run("readings", *options[4:], "--report-only", "--report", tmp_path / "docs") == 0
    assert (tmp_path / "docs" / "figures" / "readings.svg").exists()


@pytest.mark.slow
def test_runs_of_a_study_leave_as_a_table_and_enter_another_folder(tmp_path, capsys, monkeypatch):
    readings = (DEFAULT, parse(["performance=final"]))
    episodes = {CART_POLE.environment: 20}
    small = replace(design.SMALL, claims=("pole-2",), episodes=episodes, readings=readings)
    monkeypatch.setattr(design, "SMALL", small)
    table, options = tmp_path / "runs.csv.gz", ("readings", "--runs", 2, "--jobs", 1)
    assert run(*options, "--out", tmp_path / "here", "--export", table) == 0
    assert "14 runs to make" in output(capsys)
    assert run(*options, "--out", tmp_path / "there", "--import", table) == 0
    said = output(capsys)
    assert "14 runs of these figures by this version of the code are there" in said
    assert "all runs are there already" in said
    here, there = (
        json.loads((tmp_path / n / "readings.json").read_text()) for n in ("here", "there")
    )
    assert here["claims"] == there["claims"]
    assert here["runs"] == there["runs"] == 14
