"""The metrics of the service, in the text format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from rblspi.serving.decisions import Decisions

Endpoint = Callable[[Request], Awaitable[Response]]

#: seconds, from the fastest request to longer than any client waits
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics(Collector):
    """Counts requests and measures their times; `Decisions` counts decisions and outcomes."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(self)
        labels = ["path", "status"]
        self._requests = Counter("rblspi_requests", "Requests", labels, registry=registry)
        self._seconds = Histogram(
            "rblspi_request_seconds",
            "Time from a request to its response",
            ["path"],
            buckets=BUCKETS,
            registry=registry,
        )

    def timed(self, path: str, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose requests are counted."""
        seconds, good = self._seconds.labels(path), self._requests.labels(path, "200")

        async def timed(request: Request) -> Response:
            start = time.perf_counter()
            response = await endpoint(request)
            seconds.observe(time.perf_counter() - start)
            status = response.status_code
            (good if status == 200 else self._requests.labels(path, str(status))).inc()
            return response

        return timed

    def text(self) -> bytes:
        """All numbers, in Prometheus's format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """The counts that `Decisions` keeps."""
        taken = CounterMetricFamily(
            "rblspi_decisions", "Decisions since the start, by action", labels=["action"]
        )
        for action, count in self._decisions.taken.items():
            taken.add_metric([str(action)], count)
        yield taken
        if (counts := self._decisions.counts) is not None:
            for name, count in counts.items():
                words = f"{name.capitalize()} in the log"
                yield GaugeMetricFamily(f"rblspi_log_{name}", words, count)
            words, repeated = "Outcomes that were there already", self._decisions.repeated
            yield CounterMetricFamily("rblspi_outcomes_repeated", words, repeated)
