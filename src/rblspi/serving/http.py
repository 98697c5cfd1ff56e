"""The HTTP service: `requests` behind Starlette, with one wait for the disk for all who wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from rblspi.serving.requests import Answers, NoLogError

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

    from rblspi.serving.metrics import Metrics
except ImportError as error:
    raise ImportError('the service needs more packages: pip install "rblspi[serve]"') from error

#: bytes of a request: some 10,000 states, on which a process works for a tenth of a second
LARGEST = 2**20


def application(answers: Answers) -> Starlette:
    """The service as an ASGI application."""
    metrics = Metrics(answers)
    disk = Disk(answers)

    def post(name: str, answer: Callable[[dict[str, Any]], dict[str, Any]], writes: bool) -> Route:
        async def endpoint(request: Request) -> Response:
            found = answer(await _asked(request))
            if writes:
                await disk.holds_everything()
            return _json(found)

        return Route(f"/{name}", metrics.timed(name, _explained(endpoint)), methods=["POST"])

    async def health(request: Request) -> Response:
        problem = disk.problem
        return _json(answers.health()) if problem is None else _sentence(503, problem)

    async def shown(request: Request) -> Response:
        return Response(metrics.text(), media_type=metrics.media_type)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await disk.close()

    return Starlette(
        routes=[
            post("act", answers.act, answers.decisions is not None),
            post("values", answers.values, False),
            post("record", answers.record, True),
            Route("/health", metrics.timed("health", health), methods=["GET"]),
            Route("/metrics", shown, methods=["GET"]),
        ],
        exception_handlers={404: _no_such_page, 405: _other_method},
        lifespan=lifespan,
    )


class Disk:
    """Waits until what was written is on the disk; all who wait at a time share one wait.

    After an error nobody knows what is on the disk. From then on, everything is refused.
    """

    def __init__(self, answers: Answers) -> None:
        self._log = None if answers.decisions is None else answers.decisions.log
        self._waiting: list[asyncio.Future[None]] = []
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "disk")
        self.problem: str | None = None

    async def holds_everything(self) -> None:
        """Return once everything that was written before is on the disk."""
        if self._log is None:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        await future

    async def _work(self) -> None:
        assert self._log is not None
        loop = asyncio.get_running_loop()
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            try:
                if self.problem is None:
                    await loop.run_in_executor(self._thread, self._log.sync)
            except OSError as error:
                self.problem = f"the log cannot be written: {error}; start the service again"
            for future in waiting:
                if not future.done() and self.problem is None:  # the client may have gone
                    future.set_result(None)
                elif not future.done():
                    future.set_exception(DiskError(self.problem))
        self._worker = None

    async def close(self) -> None:
        """Wait for those who wait."""
        if self._worker is not None:
            await self._worker
        self._thread.shutdown()


class DiskError(OSError):
    """Something could not be written down."""


# Requests and responses ------------------------------------------------------------------------


async def _asked(request: Request) -> dict[str, Any]:
    """The object in the body of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # which no page of another site can send
        raise HTTPException(
            415, f"the content type is {kind[:50] or 'missing'}: send application/json"
        )
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise HTTPException(413, f"a request of more than {LARGEST:,} bytes: send it in parts")
    try:
        found = _DECODER.decode(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the request is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise HTTPException(400, 'the request must be an object, like {"state": ...}')
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


#: made once: ``json.loads`` with an argument makes one for every request
_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _explained(endpoint: Any) -> Any:
    """An endpoint whose errors are answers."""

    async def explained(request: Request) -> Response:
        try:
            response: Response = await endpoint(request)
        except HTTPException as error:
            return _sentence(error.status_code, error.detail)
        except NoLogError as error:
            return _sentence(404, str(error))
        except ValueError as error:
            return _sentence(400, str(error))
        except OSError as error:
            return _sentence(503, f"nothing was written: {error}")
        except ClientDisconnect:
            return Response(status_code=400)
        return response

    return explained


def _json(found: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(found), status, media_type="application/json")


def _sentence(status: int, text: str) -> Response:
    return _json({"error": text}, status)


async def _no_such_page(request: Request, error: Exception) -> Response:
    pages = "POST /act, /values and /record, GET /health and /metrics"
    return _sentence(404, f"there is nothing at {request.url.path[:100]}, only {pages}")


async def _other_method(request: Request, error: Exception) -> Response:
    allowed = (getattr(error, "headers", None) or {}).get("Allow", "another method")
    response = _sentence(405, f"{request.url.path[:100]} takes {allowed}, not {request.method}")
    response.headers["Allow"] = allowed
    return response
