"""The command as a user types it."""

import csv
import json
import signal
import subprocess
import sys
import time

import pytest
import typer
from typer.testing import CliRunner

from rblspi.cli.reproduce import reproduce
from rblspi.experiments.paper import FIGURES
from tests.experiments import test_toml

app = typer.Typer()
app.command()(reproduce)

GOOD = test_toml.GOOD.replace("online-lspi", "rblspi")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with the results of an experiment from a file."""
    folder = tmp_path_factory.mktemp("mine")
    (folder / "mine.toml").write_text(GOOD, encoding="utf-8")
    result = run(
        "--config", folder / "mine.toml", "--runs", 2, "--jobs", 2, "--out", folder / "out"
    )
    assert result.exit_code == 0, result.output
    return folder


def test_an_experiment_of_one_s_own_gets_a_report(mine):
    out = mine / "out"
    assert {path.name for path in (out / "figures").iterdir()} == {"mine.png", "mine.svg"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Mine" in page
    assert "no claim" not in page
    assert json.loads((out / "claims.json").read_text())["runs"] == 4


def test_the_same_command_again_runs_nothing(mine):
    result = run("--config", mine / "mine.toml", "--runs", 2, "--out", mine / "out")
    assert "all runs are there already" in result.output


def test_more_runs_run_only_the_new_ones(mine):
    result = run("--config", mine / "mine.toml", "--runs", 3, "--jobs", 1, "--out", mine / "out")
    assert "2 runs to make" in result.output


def test_the_report_can_be_made_elsewhere_and_tables_written(mine, tmp_path):
    result = run(
        *("--config", mine / "mine.toml", "--out", mine / "out", "--report-only"),
        *("--report", tmp_path / "docs", "--export", tmp_path / "blocks.csv"),
        *("--export-episodes", tmp_path / "all.csv"),
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "docs" / "report.html").exists()
    for name, per_run in (("blocks.csv", 3 + 4), ("all.csv", 30 + 40)):
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == per_run * len({row["seed"] for row in rows})


def test_figures_and_claims_are_listed():
    result = run("--list")
    assert result.exit_code == 0
    for name in FIGURES:
        assert name in result.output
    assert "sparse-2" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mountain-cra"], "did you mean mountain-car"),
        (["nothing"], "known: chain"),
        (["--config", "none.toml"], "none.toml cannot be read"),
        (["--report-only", "chain"], "there is no"),
        (["chain", "--export", "blocks.xlsx"], "must end in .csv, .csv.gz or .parquet"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(tmp_path, arguments, message):
    result = run(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_an_experiment_of_ones_own_is_not_taken_for_the_papers(tmp_path):
    path = tmp_path / "pendulum.toml"
    path.write_text(test_toml.GOOD.replace('id = "mine"\n', ""), encoding="utf-8")
    result = run("--config", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "'pendulum' is a figure of the paper" in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_settings_that_an_algorithm_does_not_take_are_told_before_anything_runs(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(test_toml.GOOD, encoding="utf-8")
    result = run("--config", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "online-lspi on rblspi/MountainCar-v0" in result.output
    assert "precision'" in result.output


def test_a_foreign_results_file_is_refused(tmp_path):
    (tmp_path / "results.sqlite").write_text("not mine" * 100)
    result = run("chain", "--out", tmp_path)
    assert result.exit_code == 2
    assert "results.sqlite" in result.output
    assert (tmp_path / "results.sqlite").read_text() == "not mine" * 100


def test_a_scheduler_that_does_not_answer(tmp_path):
    pytest.importorskip("distributed")
    result = run("chain", "--runs", 1, "--scheduler", "nonsense://x", "--out", tmp_path)
    assert result.exit_code == 2
    assert "no Dask scheduler answers at nonsense://x" in " ".join(result.output.split())


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD, encoding="utf-8")
    code = (
        "import signal, typer; from rblspi.cli.reproduce import reproduce\n"
        "app = typer.Typer(); app.command()(reproduce)\n"
        "if __name__ == '__main__':\n"
        # A shell that runs tests in the background makes its children ignore Ctrl-C.
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    app()\n"
    )
    program = tmp_path / "program.py"
    program.write_text(code)
    process = subprocess.Popen(
        [sys.executable, program, "--config", path, "--runs", "5000", "--jobs", "1"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    for line in process.stderr:
        if "runs to make" in line:
            break
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "finished runs are kept" in rest
    assert "Traceback" not in rest
