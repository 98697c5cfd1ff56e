"""A policy that decides, and writes down what it decided and what came of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

from rblspi.data.decision_log import DecisionLog, Outcome
from rblspi.policies.export import model_of
from rblspi.policies.linear import LinearPolicy
from rblspi.policies.standalone import StandalonePolicy, encoded

#: characters of the name of an episode
LONGEST_NAME = 200


class Decision(NamedTuple):
    """An action, and the id with which its outcome is recorded."""

    id: str
    action: Any


class Decisions:
    """Decides by a policy, and keeps a log from which the next policy is learnt.

    What a method has returned is on the disk: it survives the end of the process, and a power cut.
    The log is one file in JSON Lines, see `rblspi.data.decision_log`. `rblspi.data.read_log` and
    ``rblspi fit`` read it as transitions.

    Parameters
    ----------
    policy : LinearPolicy
    log : path
        The file; it is gone on with if it is there. One process at a time may write to it.

    Examples
    --------
    >>> with Decisions(policy, "decisions.jsonl") as decisions:  # doctest: +SKIP
    ...     decision = decisions.act({"stock": 1, "weekday": "Mon"})
    ...     decisions.record(decision.id, 3.5, {"stock": 0, "weekday": "Tue"})
    """

    def __init__(self, policy: LinearPolicy | StandalonePolicy, log: str | PathLike[str]) -> None:
        if isinstance(policy, LinearPolicy):
            policy = StandalonePolicy(model_of(policy, bool(policy.pessimism)))
        self.policy = policy
        self.log = DecisionLog(log, policy.actions, _columns(policy))
        self.log.note_policy(_digest(policy), policy.algorithm)

    def act(self, state: Any, episode: str | None = None) -> Decision:
        """Decide in a state.

        Parameters
        ----------
        state : mapping, sequence or number
            As `LinearPolicy.act` takes it.
        episode : str, optional
            What the decision belongs to, such as a customer or a day. Decisions of an episode
            follow one another in the log, however those of several ones alternate.
        """
        (decision,) = self.act_many([state], [episode])
        return decision

    def act_many(
        self, states: Sequence[Any], episodes: Sequence[str | None] | None = None
    ) -> list[Decision]:
        """Decide in several states at once."""
        decided = self.decide(states, episodes)
        self.log.sync()
        return decided

    def record(
        self,
        id: str,
        reward: float,
        next_state: Any = None,
        terminated: bool = False,
        truncated: bool = False,
        elapsed: float | None = None,
    ) -> bool:
        """Record what came of a decision; returns whether that is new.

        Outcomes may arrive in any order, and the same one any number of times.

        Parameters
        ----------
        id : str
            Of the decision.
        reward : float
        next_state : mapping, sequence or number
            The state after the action; it may be left out if that is terminal.
        terminated : bool
            Whether the next state is terminal.
        truncated : bool
            Whether the episode was cut short there.
        elapsed : float, optional
            The time until the next state, above 0. It is needed if the log is read with a
            ``discount_per``: in its units, or in seconds if that is a duration.
        """
        outcome = Outcome(id, reward, next_state, terminated, truncated, elapsed)
        return self.record_many([outcome]) == 1

    def record_many(self, outcomes: Iterable[Outcome | Mapping[str, Any]]) -> int:
        """Record several outcomes, all of them or none; returns how many are new."""
        new = self.take(outcomes)
        self.log.sync()
        return new

    def decide(
        self, states: Sequence[Any], episodes: Sequence[str | None] | None = None
    ) -> list[Decision]:
        """Decide, and write that down without waiting for the disk, see ``log.sync``."""
        names = [None] * len(states) if episodes is None else [_episode(e) for e in episodes]
        if len(names) != len(states):
            raise ValueError(f"there are {len(states)} states, but {len(names)} episodes")
        actions = each("states", states, self.policy.act)
        kept = [self._kept(state) for state in states]
        ids = self.log.decide(list(zip(kept, actions, names, strict=True)))
        return list(map(Decision, ids, actions))

    def take(self, outcomes: Iterable[Outcome | Mapping[str, Any]]) -> int:
        """Record outcomes without waiting for the disk, see ``log.sync``."""
        return self.log.record(each("outcomes", list(outcomes), self._outcome))

    def _outcome(self, given: Outcome | Mapping[str, Any]) -> Outcome:
        """An outcome as it is written down, checked."""
        outcome = given if isinstance(given, Outcome) else _from_mapping(given)
        reward, elapsed = _number("reward", outcome.reward), outcome.elapsed
        if elapsed is not None:
            elapsed = _number("elapsed", elapsed)
            if elapsed <= 0.0:
                raise ValueError(f"elapsed={elapsed!r} must be above 0: the time to the next state")
        for name in ("terminated", "truncated"):
            if not isinstance(getattr(outcome, name), bool):
                raise ValueError(f"{name}={getattr(outcome, name)!r} must be true or false")
        after = outcome.next_state
        if after is None and not outcome.terminated:
            raise ValueError("next_state is missing: give the state after the action")
        if after is not None:
            self.policy.observation(after)
            after = self._kept(after)
        return outcome._replace(reward=reward, next_state=after, elapsed=elapsed)

    def _kept(self, state: Any) -> Any:
        """A state, which the policy has accepted, as plain data."""
        policy = self.policy
        if not policy.inputs:
            numbers = policy.observation(state)
            return numbers[0] if policy.size == 1 else numbers
        pairs = zip(policy.inputs, policy.listed(state), strict=True)
        return {column["name"]: _plain(column, value) for column, value in pairs}

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def each(name: str, items: Sequence[Any], work: Any) -> list[Any]:
    """The results of a function for every item; an error says which item it is about."""
    results = []
    for i, item in enumerate(items):
        try:
            results.append(work(item))
        except ValueError as error:
            where = f"{name}[{i}]: " if len(items) > 1 else ""
            raise ValueError(f"{where}{error}") from error
    return results


def _plain(column: Mapping[str, Any], value: Any) -> Any:
    """A value of a column as a log holds it: a number, a word, or None if it is missing."""
    words = column["words"]
    if (type(value) is str and value in words) or (
        not words and type(value) in (int, float) and value == value
    ):
        return value
    numbers = encoded(column, value, alone=False)
    if column["fill"] is not None and numbers.pop():  # whether it is missing
        return None
    return words[numbers.index(1.0)] if words else numbers[0]


def _number(name: str, given: Any) -> float:
    number = getattr(given, "item", lambda: given)()  # of a NumPy scalar
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{name}={number!r} must be a number")
    if not math.isfinite(number):
        raise ValueError(f"{name}={number!r} must be finite")
    return float(number)


def _episode(name: Any) -> str | None:
    if name is None:
        return None
    text = isinstance(name, str) and len(name) <= LONGEST_NAME and not _has_surrogates(name)
    if not text:
        raise ValueError(
            f"episode={str(name)[:50]!r} must be text of at most {LONGEST_NAME} letters"
        )
    return str(name)


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def _from_mapping(given: Any) -> Outcome:
    if not isinstance(given, Mapping):
        raise ValueError(f"{str(given)[:50]!r} is no outcome: give id, reward and next_state")
    unknown = [name for name in given if name not in Outcome._fields]
    if unknown:
        raise ValueError(
            f"an outcome has no {str(unknown[0])[:50]!r}, only {', '.join(Outcome._fields)}"
        )
    absent = [name for name in ("id", "reward") if name not in given]
    if absent:
        raise ValueError(f"{absent[0]} is missing: an outcome has id, reward and next_state")
    return Outcome(**given)


def _columns(policy: StandalonePolicy) -> list[dict[str, Any]]:
    """The columns of states, for the heading of the log; one called state if it is a number."""
    if policy.inputs or policy.size > 1:
        return policy.inputs
    return [{"name": "state", "words": [], "whole": policy.kind == "OneHot", "fill": None}]


def _digest(policy: StandalonePolicy) -> str:
    """A short name of a policy, by which others can be told from it."""
    numbers = [policy.actions, policy.inputs, policy.kind, policy.weights, policy.pessimism]
    return hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]
