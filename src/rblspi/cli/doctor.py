"""``rblspi doctor``: what keeps a saved agent from learning."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rblspi.cli import options, parsing


def doctor(
    saved: options.SavedArgument,
    env: options.EnvironmentOption = None,
    env_set: options.EnvironmentSettings = None,
    wrap: options.Wrap = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Look for what keeps a saved agent from learning, with evidence and what to try."""
    loaded = parsing.load(saved, env, parsing.assignments("--env-set", env_set), wrap)
    from rblspi.online.agent import Agent
    from rblspi.online.findings import diagnose

    if not isinstance(loaded.actor, Agent):
        raise ValueError(
            f"{saved} holds a policy, which remembers no transitions: rblspi check LOG looks at "
            "the log that it was fitted to"
        )
    findings = diagnose(loaded.actor)
    if as_json:
        print(json.dumps([finding._asdict() for finding in findings]))
        return
    for finding in findings:
        print(finding)
    if not findings:
        print(
            "None of the usual causes was found. Compare several seeds, and look at what it "
            f"believes: rblspi show {saved}"
        )
