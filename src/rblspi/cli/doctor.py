"""``rblspi doctor``: find out what keeps a saved agent from learning."""

from __future__ import annotations

import json

from rblspi.cli import options
from rblspi.cli.commands import Command
from rblspi.cli.saved import Selection


def doctor(
    saved: Selection,
    as_json: options.AsJSON = False,
) -> None:
    """Look for what keeps a saved agent from learning, with evidence and what to try."""
    loaded = saved.load()
    from rblspi.online.agent import Agent
    from rblspi.online.findings import diagnose

    if not isinstance(loaded.actor, Agent):
        raise ValueError(
            f"{saved.path} holds a policy, which remembers no transitions: rblspi check LOG looks "
            "at the log that it was fitted to"
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
            f"believes: rblspi show {saved.path}"
        )


COMMAND = Command(doctor, "runs/pole")
