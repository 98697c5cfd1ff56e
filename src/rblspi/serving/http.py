"""The HTTP service: questions in JSON, answered by `Decisions`, behind Starlette.

A question is an object in the body of a request. An invalid one raises a ValueError with a message
for the client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rblspi.serving.decisions import Decisions, NoLogError

try:
    from prometheus_client import CONTENT_TYPE_LATEST
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

    from rblspi.serving.metrics import Endpoint, Metrics
except ImportError as error:
    raise ImportError('the service needs more packages: pip install "rblspi[serve]"') from error

#: most bytes of a request: some 10,000 states, which take a tenth of a second
LARGEST = 2**20

Question = Mapping[str, Any]
Answer = dict[str, Any]


def application(decisions: Decisions) -> Starlette:
    """The service as an ASGI application."""
    metrics = Metrics(decisions)

    def post(name: str, answer: Callable[[Decisions, Question], Awaitable[Answer]]) -> Route:
        async def endpoint(request: Request) -> Response:
            return _json(await answer(decisions, await _asked(request)))

        return Route(f"/{name}", metrics.timed(f"/{name}", _explained(endpoint)), methods=["POST"])

    async def health(request: Request) -> Response:
        problem = decisions.problem
        return _json(_health(decisions)) if problem is None else _sentence(503, problem)

    async def shown(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            *(post("act", _act), post("values", _values), post("record", _record)),
            Route("/health", metrics.timed("/health", health), methods=["GET"]),
            Route("/metrics", shown, methods=["GET"]),
        ],
        exception_handlers={404: _no_such_page, 405: _other_method},
    )


# Questions and answers -------------------------------------------------------------------------


async def _act(decisions: Decisions, asked: Question) -> Answer:
    """``state`` and ``episode``: one decision; ``states`` and ``episodes``: several."""
    states, single = _states(asked, "episode", "episodes")
    episodes = [asked.get("episode")] if single else asked.get("episodes")
    if not isinstance(episodes, list | None):
        raise ValueError("episodes must be a list, with a name or null for every state")
    made = await asyncio.wrap_future(decisions.start_acting(states, episodes))
    answer: Answer = {"actions": [decision.action for decision in made]}
    if decisions.counts is not None:
        answer["ids"] = [decision.id for decision in made]
    return {name[:-1]: values[0] for name, values in answer.items()} if single else answer


async def _values(decisions: Decisions, asked: Question) -> Answer:
    """``state`` or ``states``: the value of every action, and the best action."""
    states, single = _states(asked)
    values, best = decisions.values(states)
    std = None if values.std is None else values.std.tolist()
    answer = {"values": values.mean.tolist(), "std": std, "best": best}
    if single:
        answer = {name: found and found[0] for name, found in answer.items()}
    return {"actions": decisions.actions, **answer}


async def _record(decisions: Decisions, asked: Question) -> Answer:
    """``outcomes``, a list, or one outcome: ``id``, ``reward``, ``next_state``, and flags."""
    several = "outcomes" in asked
    if several:
        _only(asked, "outcomes")
    outcomes = asked["outcomes"] if several else [asked]
    if not isinstance(outcomes, list):
        raise ValueError("outcomes must be a list")
    new = await asyncio.wrap_future(decisions.start_recording(outcomes))
    return {"recorded": new, "repeated": len(outcomes) - new}


def _health(decisions: Decisions) -> Answer:
    """The served policy, and the number of logged decisions."""
    policy = decisions.policy
    return {
        "status": "ok",
        "algorithm": policy.provenance.get("algorithm", ""),
        "actions": decisions.actions,
        "inputs": policy.features.input_size if policy.inputs is None else policy.inputs.plain(),
        "log": decisions.counts,
    }


def _states(asked: Question, one: str = "", many: str = "") -> tuple[list[Any], bool]:
    """The states of a question, and whether it is about a single one."""
    if ("state" in asked) == ("states" in asked):
        raise ValueError('give one "state", or a list of "states"')
    single = "state" in asked
    _only(asked, *filter(None, ("state", one) if single else ("states", many)))
    if single:
        return [asked["state"]], True
    if not isinstance(asked["states"], list) or not asked["states"]:
        raise ValueError("states must be a list with at least one state")
    return asked["states"], False


def _only(asked: Question, *known: str) -> None:
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0][:50]!r} is not understood here, only {', '.join(known)}")


# Requests and responses ------------------------------------------------------------------------


async def _asked(request: Request) -> Question:
    """The object in the body of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # pages of other sites cannot send this type
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


#: made once, because ``json.loads`` with an argument makes a decoder for every request
_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _explained(endpoint: Endpoint) -> Endpoint:
    """An endpoint that turns errors into responses."""

    async def explained(request: Request) -> Response:
        try:
            return await endpoint(request)
        except HTTPException as error:
            return _sentence(error.status_code, error.detail)
        except ValueError as error:
            return _sentence(404 if isinstance(error, NoLogError) else 400, str(error))
        except OSError as error:
            return _sentence(503, f"nothing was written: {error}")
        except ClientDisconnect:
            return Response(status_code=400)

    return explained


def _json(found: Answer, status: int = 200) -> Response:
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
