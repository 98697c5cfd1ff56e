"""What a service counts, in the text format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
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

#: seconds, from less than a request takes to more than anybody waits
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """Counts requests and their times; decisions and outcomes are counted where they are made."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, decisions: Decisions) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(_Decisions(decisions))
        self._requests = Counter(
            "rblspi_requests", "Requests", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "rblspi_request_seconds",
            "Time from a request to its response",
            ["path"],
            buckets=BUCKETS,
            registry=self._registry,
        )

    def timed(self, name: str, endpoint: Endpoint) -> Endpoint:
        """An endpoint whose requests are counted."""
        seconds = self._seconds.labels(f"/{name}")
        good = self._requests.labels(f"/{name}", "200")

        async def timed(request: Request) -> Response:
            start = time.perf_counter()
            response = await endpoint(request)
            seconds.observe(time.perf_counter() - start)
            status = response.status_code
            count = good if status == 200 else self._requests.labels(f"/{name}", str(status))
            count.inc()
            return response

        return timed

    def text(self) -> bytes:
        """All numbers, in Prometheus's format."""
        return generate_latest(self._registry)


class _Decisions(Collector):
    """The numbers that the answers keep themselves."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions

    def collect(self) -> Iterator[Any]:
        """The numbers by now."""
        taken = CounterMetricFamily(
            "rblspi_decisions", "Decisions since the start, by action", labels=["action"]
        )
        for action, count in self._decisions.taken.items():
            taken.add_metric([str(action)], count)
        yield taken
        counts = self._decisions.counts
        if counts is None:
            return
        for name, count in counts.items():
            yield GaugeMetricFamily(f"rblspi_log_{name}", f"{name.capitalize()} in the log", count)
        yield CounterMetricFamily(
            "rblspi_outcomes_repeated", "Outcomes that were there already", self._decisions.repeated
        )
