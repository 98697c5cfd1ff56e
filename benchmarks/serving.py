"""The HTTP service at a given rate of requests.

    python -m benchmarks.serving [--rate 2000] [--seconds 20] [--log]

The service is kept on one core, the clients on another. Requests are sent at fixed times, whether
earlier ones were answered or not, over 64 connections, and their time counts from when they should
have been sent. On a shared machine, processor time tells more than waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.inventory import Inventory
from rblspi import FQI, LinearPolicy
from rblspi.rollout import collect

CONNECTIONS = 64
BODY = b'{"state": 7}'
REQUEST = (
    b"POST /act HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


def inventory_policy() -> LinearPolicy:
    """A policy for the stock of a shop, from a log."""
    return FQI(discount=0.95).fit(list(collect(Inventory(), 5_000, seed=0))).policy()


class Connection(asyncio.Protocol):
    """Sends one request after the other, and notes when its answer came."""

    def __init__(self, latencies: list[float]) -> None:
        self.due: list[float] = []  # when requests should have been sent
        self._latencies, self._busy, self._seen = latencies, False, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what requests are written to."""
        self._transport = transport

    def ask(self, due: float) -> None:
        """Send a request once the earlier ones are answered."""
        self.due.append(due)
        self._next()

    def _next(self) -> None:
        if self.due and not self._busy:
            self._busy = True
            self._transport.write(REQUEST)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Note the time once an answer is whole."""
        self._seen += data
        if not self._seen.endswith(b"}"):
            return
        assert self._seen.startswith(b"HTTP/1.1 200"), self._seen
        self._latencies.append(time.perf_counter() - self.due.pop(0))
        self._busy, self._seen = False, b""
        self._next()


async def load(port: int, rate: float, seconds: float) -> list[float]:
    """Send requests at a rate; returns the seconds that each of them took."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    made = [
        await loop.create_connection(lambda: Connection(latencies), "127.0.0.1", port)
        for _ in range(CONNECTIONS)
    ]
    connections = [protocol for _, protocol in made]
    start, sent = time.perf_counter(), 0
    while sent < rate * seconds:
        due = int((time.perf_counter() - start) * rate)
        for number in range(sent, min(due, int(rate * seconds))):
            connections[number % CONNECTIONS].ask(start + number / rate)
        sent = max(sent, due)
        await asyncio.sleep(0.0005)
    while any(connection.due for connection in connections):
        await asyncio.sleep(0.01)
    for transport, _ in made:
        transport.close()
    return latencies


def cpu_seconds(process: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def service(policy: LinearPolicy, rate: float, seconds: float, log: bool) -> dict[str, float]:
    """Load the service; returns what it took."""
    with TemporaryDirectory() as folder:
        disk = disk_waits(folder) if log else {}
        file = Path(folder) / "policy.npz"
        policy.save(file)
        arguments = ["serve", str(file), "--port", "0"]
        arguments += ["--log", f"{folder}/decisions.db"] if log else []
        start = "from rblspi.cli import main; main()"
        command = [sys.executable, "-c", start, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = re.search(r":(\d+):", process.stdout.readline().partition("http://")[2])
            assert found is not None
            _on_core(process.pid, 0)
            asyncio.run(load(int(found[1]), 200.0, 1.0))  # to warm up
            before = cpu_seconds(process.pid)
            begun = time.perf_counter()
            latencies = 1e3 * np.array(asyncio.run(load(int(found[1]), rate, seconds)))
            took = time.perf_counter() - begun
            used = cpu_seconds(process.pid) - before
            process.terminate()
    return {
        "requests a second": len(latencies) / took,
        "median ms": float(np.median(latencies)),
        "p99 ms": float(np.percentile(latencies, 99)),
        "processor us a request": 1e6 * used / len(latencies),
        **disk,
    }


def disk_waits(folder: str, count: int = 200) -> dict[str, float]:
    """Milliseconds until a short line is on the disk, without the service."""
    waits = []
    with open(Path(folder) / "lines", "wb", buffering=0) as file:
        for _ in range(count):
            file.write(b"x" * 200)
            start = time.perf_counter()
            os.fsync(file.fileno())
            waits.append(1e3 * (time.perf_counter() - start))
    return {
        "disk median ms": float(np.median(waits)),
        "disk p99 ms": float(np.percentile(waits, 99)),
    }


def _on_core(process: int, core: int) -> None:
    """Keep the service on one core, and this process on the others."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})
    others = os.sched_getaffinity(0) - {core}
    os.sched_setaffinity(0, others or {core})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--log", action="store_true", help="write down every decision")
    given = parser.parse_args()
    found = service(inventory_policy(), given.rate, given.seconds, given.log)
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


if __name__ == "__main__":
    main()
