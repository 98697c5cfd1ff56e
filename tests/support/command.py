"""The command line as a test calls it."""

from __future__ import annotations

import pytest

from rblspi.cli import main


def run(*arguments: object) -> int:
    """Exit code of a command."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines on the error stream, without the notice that something is being compiled."""
    lines = capsys.readouterr().err.strip().splitlines()
    return [line for line in lines if not line.startswith("rblspi: compiling ")]
