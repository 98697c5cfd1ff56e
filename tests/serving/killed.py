"""A service under load that is killed and started again: nothing is lost, nothing is doubled.

    python -m tests.serving.killed --seconds 300

Clients ask for decisions, one or several at a time, and record their outcomes later, in any order,
in batches, and some of them twice. Half-way the process gets SIGKILL. Whatever a client was told
was done has to be in the log, once; and nothing that no client sent.
"""

import argparse
import http.client
import json
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from rblspi.data import read_log
from tests.support.service import Client, Service

WORDS = ("Mon", "Tue", "Wed")
#: seconds after which a client tries again
PAUSE = 0.1
#: the share of decisions whose outcome never arrives
FORGOTTEN = 0.05


class Load(threading.Thread):
    """A client that remembers what it was told was done."""

    def __init__(self, port, until, seed):
        super().__init__()
        self._client, self._until = Client(port), until
        self._rng = random.Random(seed)
        self.decided = {}  # states and actions, by id
        self.waiting = {}  # outcomes that nobody has confirmed
        self.recorded = {}  # outcomes that were confirmed
        self.counts = Counter()

    def run(self):
        while time.monotonic() < self._until or not self.recorded:  # it may have to compile first
            self._try(self._decide)
            if self._rng.random() < 0.5:
                self._try(self._record)
        while self.waiting:
            self._try(self._record)
        self._client.close()

    def _try(self, work):
        try:
            work()
            self.counts["requests"] += 1
        except (OSError, http.client.HTTPException):
            self.counts["failed requests"] += 1
            time.sleep(PAUSE)

    def _state(self):
        return {"stock": self._rng.uniform(-1, 1), "weekday": self._rng.choice(WORDS)}

    def _decide(self):
        states = [self._state() for _ in range(self._rng.randint(1, 5))]
        answer = self._client.ask("/act", {"states": states})
        for identifier, state, action in zip(answer["ids"], states, answer["actions"], strict=True):
            assert identifier not in self.decided, "an id was given twice"
            self.decided[identifier] = state, action
            if self._rng.random() > FORGOTTEN:
                self.waiting[identifier] = {
                    "id": identifier,
                    "reward": self._rng.random(),
                    "next_state": self._state(),
                    "terminated": False,
                    "truncated": False,
                }

    def _record(self):
        some = self._rng.sample(sorted(self.waiting), min(len(self.waiting), 8))
        again = self._rng.sample(sorted(self.recorded)[:50], min(len(self.recorded), 1))
        outcomes = [self.waiting[i] for i in some] + [self.recorded[i] for i in again]
        if outcomes:
            answer = self._client.ask("/record", {"outcomes": outcomes})
            assert answer["recorded"] + answer["repeated"] == len(outcomes)
            self.counts["repeated outcomes"] += answer["repeated"]
            self.recorded |= {i: self.waiting.pop(i) for i in some}


def trial(policy, log, seconds, clients=4):
    """Load a service, kill it half-way, start it again, and compare the log with the clients."""
    with Service(policy, log) as first:
        port, start = first.port, time.monotonic()
        loads = [Load(port, start + seconds, seed) for seed in range(clients)]
        for load in loads:
            load.start()
        time.sleep(seconds / 2)
        first.end()
    with Service(policy, log, port) as second:
        for load in loads:
            load.join()
        client = Client(port)
        kept = client.ask("/health")["log"]
        client.close()
        second.signal(signal.SIGTERM)
        second.wait().require(130)
    return compared(log, loads, kept)


def compared(log, loads, kept):
    """What the log and the clients agree about; an error says what they do not agree about."""
    with closing(sqlite3.connect(log)) as database:
        (name,) = database.execute("SELECT id FROM log").fetchone()
        decisions = database.execute("SELECT id, state, action FROM decisions").fetchall()
        outcomes = database.execute("SELECT decision, reward, next_state FROM outcomes").fetchall()
    by_id = {f"{name}-{i}": (json.loads(state), action) for i, state, action in decisions}
    found = {f"{name}-{i}": (reward, json.loads(after)) for i, reward, after in outcomes}
    for load in loads:
        assert load.decided.items() <= by_id.items(), "a decision was lost or changed"
    sent = {i: outcome for load in loads for i, outcome in load.recorded.items()}
    assert found.keys() == sent.keys(), "an outcome was lost, or nobody sent it"
    for identifier, outcome in sent.items():
        assert found[identifier] == (outcome["reward"], outcome["next_state"])
    assert kept == {"decisions": len(by_id), "outcomes": len(found)}
    assert read_log(log).size == len(found)
    counts = sum((load.counts for load in loads), Counter[str]())
    acknowledged = sum(len(load.decided) for load in loads)
    return counts + Counter(
        {"decisions": acknowledged, "outcomes": len(found), "unanswered": len(by_id) - acknowledged}
    )


def main():
    from tests.support.shop_policy import saved_policy

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    seconds = parser.parse_args().seconds
    with TemporaryDirectory() as folder:
        found = trial(saved_policy(Path(folder)), Path(folder) / "decisions.db", seconds)
    print(f"{seconds:g} s, one SIGKILL: nothing lost, nothing doubled; {dict(found)}")


if __name__ == "__main__":
    main()
