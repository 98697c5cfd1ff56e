"""The service answers over HTTP, checks what it is asked, and says what is wrong in a sentence."""

import asyncio
import json
import re
import resource

import numpy as np
import pytest

from rblspi import BLSPI, Polynomial
from rblspi.data import read_log
from rblspi.serving import Decisions
from tests.support.command import run
from tests.support.logs import some_log
from tests.support.shop_policy import saved_policy, shop_policy

pytest.importorskip("starlette", reason="the packages of rblspi[serve] are not installed")

from rblspi.serving.http import LARGEST, application

STATE = {"stock": 0.5, "weekday": "Mon"}
JSON = (b"content-type", b"application/json; charset=utf-8")


async def send(app, path, body=None, headers=(JSON,), method=None):
    """One request as a server passes it on; returns the status and the body of the response."""
    scope = {
        "type": "http",
        "method": method or ("GET" if body is None else "POST"),
        "path": path,
        "query_string": b"",
        "headers": list(headers),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": body or b""}

    async def take(message):
        sent.append(message)

    await app(scope, receive, take)
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:])


def asked(app, path, question=None, **given):
    body = question if isinstance(question, bytes | None) else json.dumps(question).encode()
    status, answer = asyncio.run(send(app, path, body, **given))
    return status, json.loads(answer) if answer.startswith(b"{") else answer.decode()


@pytest.fixture
def policy():
    return shop_policy()


@pytest.fixture
def decisions(policy, tmp_path):
    with Decisions(policy, tmp_path / "decisions.db") as made:
        yield made


@pytest.fixture
def app(decisions):
    return application(decisions)


def test_decisions_and_outcomes_come_and_go(app, policy, tmp_path):
    states = [STATE, {"stock": -0.2, "weekday": "Wed"}]
    status, one = asked(app, "/act", {"state": STATE, "episode": "e"})
    assert (status, one["action"]) == (200, policy.act(STATE))
    status, several = asked(app, "/act", {"states": states, "episodes": ["e", None]})
    assert several["actions"] == list(policy.act(states))
    outcomes = [
        {"id": several["ids"][1], "reward": 0, "terminated": True},
        {"id": one["id"], "reward": 1.5, "next_state": STATE},
    ]
    assert asked(app, "/record", {"outcomes": outcomes}) == (200, {"recorded": 2, "repeated": 0})
    assert asked(app, "/record", outcomes[1]) == (200, {"recorded": 0, "repeated": 1})
    assert asked(app, "/health")[1]["log"] == {"decisions": 3, "outcomes": 2}
    assert read_log(tmp_path / "decisions.db").size == 2


def test_values_are_those_of_the_policy(app, policy):
    states = [STATE, {"stock": -0.2, "weekday": "Wed"}]
    expected = policy.values(states)
    status, answer = asked(app, "/values", {"states": states})
    assert status == 200
    np.testing.assert_allclose(answer["values"], expected, rtol=1e-12)
    assert answer["actions"] == list(policy.action_names)
    assert answer["best"] == list(policy.act(states))
    one = asked(app, "/values", {"state": STATE})[1]
    np.testing.assert_allclose(one.pop("values"), answer["values"][0], rtol=1e-12)
    assert one == {"actions": answer["actions"], "std": None, "best": answer["best"][0]}


def test_values_come_with_standard_deviations():
    policy = BLSPI(Polynomial(1, low=-1, high=1), 3, discount=0.8).fit(some_log(300)).policy()
    app = application(Decisions(policy))
    answer = asked(app, "/values", {"state": [0.1, 0.2]})[1]
    stated = policy.action_values([0.1, 0.2])
    np.testing.assert_allclose(answer["std"], stated.std, rtol=1e-9)


WRONG = [
    (b"{", 400, "the request is no JSON"),
    (b'{"state": NaN}', 400, "NaN is no number"),
    (b'{"state": 1e999}', 400, "has 1 values, but needs 2"),
    (b"[" * 100_000, 400, "the request is no JSON"),
    (b"[1]", 400, "the request must be an object"),
    (b"\xff\xfe{}", 400, "the request is no JSON"),
    ({}, 400, 'give one "state", or a list of "states"'),
    ({"state": STATE, "states": [STATE]}, 400, 'give one "state", or a list of "states"'),
    ({"state": STATE, "episodes": []}, 400, "'episodes' is not understood here, only state"),
    ({"states": STATE}, 400, "states must be a list with at least one"),
    ({"states": []}, 400, "states must be a list with at least one"),
    ({"states": [STATE], "episodes": "e"}, 400, "episodes must be a list"),
    ({"states": [STATE], "episodes": ["a", "b"]}, 400, "1 states, but 2 episodes"),
    ({"state": STATE, "episode": 7}, 400, "episode='7' must be text"),
    ({"state": STATE, "episode": "\ud800"}, 400, "must be text"),
    ({"state": {"stock": 1}}, 400, "state has no 'weekday'"),
    ({"state": {"stock": 10**400, "weekday": "Mon"}}, 400, "must be a number"),
    ({"state": {"stock": [1], "weekday": "Mon"}}, 400, "must be a number"),
    ({"state": {"stock": 1e200, "weekday": "Mon"}}, 400, "is too far away: values overflow"),
    ({"state": {"stock": 1, "weekday": "x" * 1000}}, 400, r"weekday='x+\.\.\. is not in the log"),
    ({"states": [STATE, {"stock": 1, "weekday": "Sun"}]}, 400, r"states\[1\]: weekday='Sun' is"),
    (b" " * (LARGEST + 1), 413, "send it in parts"),
]


@pytest.mark.parametrize(("question", "status", "message"), WRONG)
def test_what_is_wrong_is_said(app, decisions, question, status, message):
    found, answer = asked(app, "/act", question)
    assert found == status
    assert list(answer) == ["error"]
    assert re.search(message, answer["error"]), answer
    assert len(answer["error"]) < 500
    assert decisions.counts["decisions"] == 0


def test_other_pages_methods_and_kinds_of_content(app):
    assert asked(app, "/acts", {}) == (
        404,
        {
            "error": "there is nothing at /acts, only POST /act, /values and /record, "
            "GET /health and /metrics"
        },
    )
    assert asked(app, "/act") == (405, {"error": "/act takes POST, not GET"})
    form = ((b"content-type", b"text/plain"),)  # what a page of another site can send
    status, answer = asked(app, "/act", {"state": STATE}, headers=form)
    assert (status, answer["error"]) == (
        415,
        "the content type is text/plain: send application/json",
    )


def test_without_a_log_decisions_have_no_ids(policy):
    app = application(Decisions(policy))
    assert asked(app, "/act", {"state": STATE}) == (200, {"action": policy.act(STATE)})
    status, answer = asked(app, "/record", {"id": "a-1", "reward": 1.0, "terminated": True})
    assert status == 404
    assert "start the service with --log FILE" in answer["error"]
    assert asked(app, "/health")[1]["log"] is None


def test_metrics_count_requests_and_decisions(app):
    action = asked(app, "/act", {"states": [STATE] * 5})[1]["actions"][0]
    asked(app, "/act", {})
    text = asked(app, "/metrics")[1]
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines[f'rblspi_decisions_total{{action="{action}"}}']) == 5
    assert float(lines['rblspi_requests_total{path="/act",status="200"}']) == 1
    assert float(lines['rblspi_requests_total{path="/act",status="400"}']) == 1
    assert float(lines['rblspi_request_seconds_count{path="/act"}']) == 2
    assert float(lines["rblspi_log_decisions"]) == 5


def test_those_who_wait_for_the_disk_wait_together(app, decisions):
    commits = []
    database = decisions._commits._connection
    database.set_trace_callback(lambda said: commits.append(said) if said == "COMMIT" else None)
    body = json.dumps({"state": STATE}).encode()

    async def many():
        return await asyncio.gather(*(send(app, "/act", body) for _ in range(50)))

    answers = asyncio.run(many())
    assert {status for status, _ in answers} == {200}
    assert len({json.loads(answer)["id"] for _, answer in answers}) == 50
    assert len(commits) < 50
    assert decisions.counts["decisions"] == 50


def test_a_disk_that_fails_is_said_and_nothing_is_promised(app, decisions):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        status, answer = asked(app, "/act", {"state": STATE})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 503
    assert "decisions.db cannot be written: disk I/O error" in answer["error"]
    assert asked(app, "/act", {"state": STATE})[0] == 503  # nobody knows what is on the disk
    assert asked(app, "/health")[0] == 503
    assert asked(app, "/values", {"state": STATE})[0] == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "there is no agent or policy nowhere"),
        (("policy.npz", "--host", "256.0.0.1"), "cannot be listened on"),
        (("policy.npz", "--log", "log.db"), "log.db is damaged, or no log of decisions"),
    ],
)
def test_the_command_refuses_in_one_sentence(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    saved_policy(tmp_path)
    (tmp_path / "log.db").write_text("something" * 100)
    assert run("serve", *arguments, "--port", "0") == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
