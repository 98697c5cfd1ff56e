"""``rblspi reproduce`` as a user types it."""

import json

import pytest

from rblspi.experiments.config import load
from rblspi.experiments.results_store import Store
from rblspi.experiments.tables import read_runs
from rblspi_paper.figures import FIGURES
from rblspi_paper.readings import FACTORS, SOURCES
from tests.support.command import run
from tests.support.experiments import TOML
from tests.support.pages import DOCS

pytestmark = pytest.mark.slow

NO_TUNING = DOCS.parent / "examples" / "experiments" / "no_tuning.toml"
GOOD = TOML.replace("online-lspi", "rblspi")


def output(capsys):
    """Everything printed since the last call, on one line."""
    return " ".join("".join(capsys.readouterr()).split())


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with the results of an experiment from a file."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "mine.toml").write_text(GOOD, encoding="utf-8")
    options = ("--runs", 2, "--jobs", 1, "--out", folder / "out")
    assert run("reproduce", "--config", folder / "mine.toml", *options) == 0
    return folder


def test_an_experiment_of_one_s_own_gets_a_report(mine):
    out = mine / "out"
    assert {path.name for path in (out / "figures").iterdir()} == {"mine.png", "mine.svg"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Mine" in page
    assert "no claim" not in page
    assert json.loads((out / "claims.json").read_text())["runs"] == 4


def test_the_same_command_again_runs_nothing_but_new_runs(mine, capsys):
    again = ("reproduce", "--config", mine / "mine.toml", "--out", mine / "out")
    run(*again, "--runs", 2)
    assert "all runs are there already" in output(capsys)
    run(*again, "--runs", 3, "--jobs", 1)
    assert "2 runs to make" in output(capsys)


def test_the_report_can_be_made_elsewhere_and_tables_written(mine, tmp_path):
    code = run(
        *("reproduce", "--config", mine / "mine.toml", "--out", mine / "out", "--report-only"),
        *("--report", tmp_path / "docs", "--export", tmp_path / "blocks.jsonl"),
    )
    assert code == 0
    assert (tmp_path / "docs" / "report.html").exists()
    assert {len(run["length"]) for run in read_table(tmp_path / "blocks.jsonl")} == {3, 4}


def test_runs_of_another_machine_are_taken_in_and_gone_on_with(mine, tmp_path, capsys):
    """Imported means give the report on the runs themselves, and only what is missing runs."""
    source = ("--config", mine / "mine.toml")
    here, there = mine / "out", tmp_path / "there"
    table = tmp_path / "blocks.jsonl.gz"
    run("reproduce", *source, "--out", here, "--report-only", "--export", table)
    taken = ("reproduce", *source, "--out", there, "--import", table)
    assert run(*taken, "--report-only") == 0
    name = "summaries.csv"
    assert (there / name).read_text() == (here / name).read_text()
    capsys.readouterr()
    made = json.loads((there / "claims.json").read_text())["runs"] // 2
    assert run(*taken, "--runs", made + 1, "--jobs", 1) == 0
    said = output(capsys)
    assert "0 of them new" in said
    assert f"{2 * made} runs of these figures by this version of the code are there" in said
    assert "2 runs to make" in said


def test_imported_means_that_a_figure_cannot_show_are_told_before_anything_runs(
    mine, tmp_path, capsys
):
    table = tmp_path / "blocks.jsonl"
    other = tmp_path / "other.toml"
    other.write_text(GOOD.replace("block = 10", "block = 15"), encoding="utf-8")
    run("reproduce", "--config", other, "--out", mine / "out", "--report-only", "--export", table)
    capsys.readouterr()
    options = ("--config", mine / "mine.toml", "--import", table, "--runs", 9)
    assert run("reproduce", *options, "--out", tmp_path / "out") == 2
    said = output(capsys)
    assert "known by means of 15 episodes, of which no blocks of 10 can be made" in said
    assert "runs to make" not in said
    with Store(tmp_path / "out" / "results.sqlite") as store:
        assert all(store.codes(curve) == {} for curve in load(other).curves)


def test_runs_by_another_version_of_the_code_are_told(mine, tmp_path, capsys):
    table = tmp_path / "all.jsonl"
    source = ("--config", mine / "mine.toml")
    run("reproduce", *source, "--out", mine / "out", "--report-only", "--export", table)
    write_table(table, [run | {"code": "0" * 16} for run in read_table(table)])
    capsys.readouterr()
    options = (*source, "--import", table, "--runs", 1, "--jobs", 1, "--out", tmp_path / "out")
    assert run("reproduce", *options, "--reuse") == 0
    said = output(capsys)
    assert "do not count" not in said
    assert "all runs are there already" in said
    assert run("reproduce", *options) == 0
    said = output(capsys)
    assert f"{len(read_runs(table))} by another version do not count" in said
    assert "2 runs to make" in said


def test_means_of_older_code_do_not_stand_in_the_way(mine, tmp_path):
    """They count as little for what can be drawn as they do for the report."""
    other, means = tmp_path / "other.toml", tmp_path / "means.jsonl"
    other.write_text(GOOD.replace("block = 10", "block = 15"), encoding="utf-8")
    run("reproduce", "--config", other, "--out", mine / "out", "--report-only", "--export", means)
    write_table(means, [run | {"code": "0" * 16} for run in read_table(means)])
    new = ("reproduce", "--config", mine / "mine.toml", "--out", tmp_path / "out", "--runs", 1)
    taken = (*new, "--jobs", 1, "--import", means)
    assert run(*taken, "--reuse") == 2
    assert run(*taken) == 0


def test_imported_runs_that_contradict_stored_ones_stay_out_and_are_told(mine, tmp_path, capsys):
    means, name = tmp_path / "means.jsonl", "summaries.csv"
    source = ("reproduce", "--config", mine / "mine.toml", "--report-only")
    run(*source, "--out", mine / "out", "--export", means)
    run(*source, "--out", tmp_path / "here", "--import", means)
    before = (tmp_path / "here" / name).read_text()
    first, *others = read_table(means)
    write_table(means, [first | {"return": [r + 1e-3 for r in first["return"]]}, *others])
    capsys.readouterr()
    assert run(*source, "--out", tmp_path / "here", "--import", means) == 0
    assert "1 differ from stored runs with the same seed and code, which stay" in output(capsys)
    assert (tmp_path / "here" / name).read_text() == before


def read_table(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_table(path, runs):
    path.write_text("".join(f"{json.dumps(run)}\n" for run in runs), encoding="utf-8")


def test_figures_claims_and_readings_are_listed(capsys):
    assert run("reproduce", "--list") == 0
    listed = output(capsys)
    for name in (*FIGURES, "sparse-2", *SOURCES):
        assert name in listed
    for factor in FACTORS.values():
        assert f"--reading {factor.name}=" in listed
        assert f"{factor.default.name} (default)" in listed


def test_a_reading_of_the_paper_gets_a_report_of_its_own(tmp_path):
    options = ("--reading", "chain-basis=whole", "--runs", 1, "--jobs", 1, "--out", tmp_path)
    assert run("reproduce", "chain", *options) == 0
    folder = tmp_path / "chain-basis=whole"
    assert "chain-basis=whole" in (folder / "report.html").read_text(encoding="utf-8")
    assert "improvements until BLSPI" in (folder / "numbers.md").read_text(encoding="utf-8")
    assert not (tmp_path / "report.html").exists()


def test_a_figure_can_be_printed_as_a_file_to_start_from(tmp_path, capsys):
    assert run("reproduce", "--dump", "cart-pole") == 0
    (tmp_path / "mine.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    figure = load(tmp_path / "mine.toml")
    assert figure.id == "my-cart-pole"
    assert [c.digest for c in figure.curves] == [c.digest for c in FIGURES["cart-pole"].curves]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dump", "cart-pol"], "did you mean cart-pole"),
        (["--dump", "chain"], "is not made of learning curves"),
        (["mountain-cra"], "did you mean mountain-car"),
        (["xyz"], "choose from chain"),
        (["--config", "none.toml"], "none.toml cannot be read"),
        (["--report-only", "chain"], "there is no"),
        (["chain", "--export", "blocks.xlsx"], "must end in .jsonl or .jsonl.gz"),
        (["chain", "--import", "none.jsonl"], "none.jsonl cannot be read"),
        (["chain", "--reading", "centers=edge"], "did you mean centres"),
        (["--config", NO_TUNING, "--reading", "centres=edge"], "leave --config or"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path, capsys, arguments, message):
    assert run("reproduce", *arguments, "--out", tmp_path / "out") == 2
    said = output(capsys)
    assert message in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("names", "text", "message"),
    [
        (["pendulum"], TOML.replace('id = "mine"\n', ""), "'pendulum' is a figure of the paper"),
        (["a", "b"], TOML, "two figures are called 'mine'"),
        (["mine"], TOML, "online-lspi on rblspi/MountainCar-v0"),  # has no setting of that name
    ],
)
def test_a_mistake_in_a_file_is_told_before_anything_runs(names, text, message, tmp_path, capsys):
    options = ["--out", tmp_path / "out"]
    for name in names:
        options += ["--config", tmp_path / f"{name}.toml"]
        options[-1].write_text(text, encoding="utf-8")
    assert run("reproduce", *options) == 2
    assert message in output(capsys)
    assert not list(tmp_path.glob("out/figures"))


def test_a_foreign_results_file_is_refused(tmp_path, capsys):
    (tmp_path / "results.sqlite").write_text("not mine" * 100)
    assert run("reproduce", "chain", "--out", tmp_path) == 2
    assert "results.sqlite" in output(capsys)
    assert (tmp_path / "results.sqlite").read_text() == "not mine" * 100


def test_a_scheduler_that_does_not_answer(tmp_path, capsys):
    pytest.importorskip("distributed")
    options = ("--runs", 1, "--cluster", "nonsense://x", "--out", tmp_path)
    assert run("reproduce", "chain", *options) == 2
    assert "no Dask scheduler answers at nonsense://x" in output(capsys)
