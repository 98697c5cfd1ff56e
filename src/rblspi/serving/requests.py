"""What is asked of a policy over HTTP, and the answers: checked, and without the network.

A question is the body of a request, an object in JSON. An answer is plain data. Whatever is wrong
with a question is a ValueError with a sentence for the person who asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rblspi.policies.standalone import StandalonePolicy
from rblspi.serving.decisions import Decisions, each


class NoLogError(ValueError):
    """An outcome cannot be recorded, because decisions are not."""


class Answers:
    """Answers questions by a policy.

    Parameters
    ----------
    policy : StandalonePolicy
    decisions : Decisions, optional
        What decisions are written down with; without it they have no ids.
    """

    def __init__(self, policy: StandalonePolicy, decisions: Decisions | None = None) -> None:
        self.policy, self.decisions = policy, decisions
        self.taken = dict.fromkeys(policy.actions, 0)  # how often, by action
        self.repeated = 0  # outcomes that were there already

    def act(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """``state`` and ``episode``: one decision; ``states`` and ``episodes``: several."""
        states, single = _states(asked, "episode", "episodes")
        episodes = [asked.get("episode")] if single else asked.get("episodes")
        if not single and not isinstance(episodes, list | None):
            raise ValueError("episodes must be a list, with a name or null for every state")
        answer: dict[str, Any] = {}
        if self.decisions is None:
            answer["actions"] = each("states", states, self.policy.act)
        else:
            made = self.decisions.decide(states, episodes)
            answer["actions"] = [decision.action for decision in made]
            answer["ids"] = [decision.id for decision in made]
        for action in answer["actions"]:
            self.taken[action] += 1
        return {name[:-1]: values[0] for name, values in answer.items()} if single else answer

    def values(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """``state`` or ``states``: what every action is worth, and the best one."""
        states, single = _states(asked)
        policy = self.policy
        values = each("states", states, policy.values)
        std = None if policy.deviations is None else [policy.std(state) for state in states]
        best = [policy.act(state) for state in states]
        if single:
            known = None if std is None else std[0]
            return {"actions": policy.actions, "values": values[0], "std": known, "best": best[0]}
        return {"actions": policy.actions, "values": values, "std": std, "best": best}

    def record(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """``outcomes``, a list, or one outcome: ``id``, ``reward``, ``next_state``, and flags."""
        if self.decisions is None:
            raise NoLogError("decisions are not written down: start the service with --log FILE")
        several = "outcomes" in asked
        if several:
            _only(asked, "outcomes")
        outcomes = asked["outcomes"] if several else [asked]
        if not isinstance(outcomes, list):
            raise ValueError("outcomes must be a list")
        new = self.decisions.take(outcomes)
        self.repeated += len(outcomes) - new
        return {"recorded": new, "repeated": len(outcomes) - new}

    def health(self) -> dict[str, Any]:
        """What is served, and how many decisions are written down."""
        log = None
        if self.decisions is not None:
            kept = self.decisions.log
            log = {"decisions": kept.decisions, "outcomes": kept.outcomes}
        return {
            "status": "ok",
            "algorithm": self.policy.algorithm,
            "actions": self.policy.actions,
            "inputs": self.policy.inputs or self.policy.size,
            "log": log,
        }


def _states(asked: Mapping[str, Any], one: str = "", many: str = "") -> tuple[list[Any], bool]:
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


def _only(asked: Mapping[str, Any], *known: str) -> None:
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"{unknown[0][:50]!r} is not understood here, only {', '.join(known)}")
