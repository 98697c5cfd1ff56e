"""Measure everything on one BLAS thread; print a table and write it as JSON.

    python -m benchmarks [--only NAME ...] [--out FILE]
    python -m benchmarks --markdown FILE ...   # tables of earlier results, for docs/benchmarks.md

Leave the machine alone meanwhile. What falls short is shown as falling short.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import argparse
import datetime
import json
import platform
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import offline_statistics, online, peers
from benchmarks.measure import Row

BENCHMARKS = {
    "textbook": online.against_textbook,
    "periods": online.periods,
    "pendulum": online.pendulum,
    "statistics": offline_statistics.statistics,
    "cores": online.two_cores,
    "memory": online.memory,
    "sizes": online.sizes,
    "plain": online.plain_python,
    "dqn": peers.against_dqn,
}


def processor() -> str:
    """The processor's name, as the operating system has it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def show(rows: list[Row], console: Console) -> None:
    """Print the table, and under it the numbers behind each line."""
    table = Table("what", "measured", "goal", "reached")
    for row in rows:
        value = "skipped" if row.measured is None else f"{row.measured:.2f} {row.unit}".strip()
        verdict = {None: "", True: "yes", False: "NO"}[row.reached]
        table.add_row(row.name, value, row.goal, verdict)
    console.print(table)
    for row in rows:
        console.print(f"[bold]{row.name}[/bold]", json.dumps(row.details, default=float))


def print_markdown(paths: list[Path]) -> None:
    """Print the tables of result files as one."""
    results = [json.loads(path.read_text()) for path in paths]
    print(f"{results[0]['date']}, {results[0]['machine']}, one BLAS thread:\n")
    print("| what | measured | goal | reached |\n|---|---|---|---|")
    for row in (row for result in results for row in result["rows"]):
        value = f"{row['measured']:.2g}" if row["measured"] < 100 else f"{row['measured']:.0f}"
        verdict = {None: "", True: "yes", False: "no"}[row["reached"]]
        print(f"| {row['name']} | {value} {row['unit']} | {row['goal']} | {verdict} |")


def main() -> None:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks.json"))
    parser.add_argument("--markdown", nargs="+", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.markdown:
        print_markdown(arguments.markdown)
        return
    console = Console(width=120)
    rows: list[Row] = []
    for name in arguments.only:
        console.print(f"measuring {name} ...")
        rows += BENCHMARKS[name]()
    show(rows, console)
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "rows": [row._asdict() for row in rows],
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    temporary = arguments.out.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=2, default=float) + "\n")
    temporary.replace(arguments.out)
    console.print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
