"""The page of all commands and options, written from the command line itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = """# Commands

Every command explains itself: `rblspi --help`, `rblspi train --help`. This page says the same.
"""


def page() -> str:
    """All commands as Markdown."""
    from rblspi.cli import command_line

    return "\n".join([HEAD, *(_command(*item) for item in command_line().commands.items())])


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    shown = " ".join(str(p.metavar or p.name.upper()) for p in arguments)
    rows = [f"| `{p.metavar or p.name.upper()}` | {_cell(p.help)} | |" for p in arguments]
    rows += [f"| `{_cell(_option(p))}` | {_cell(p.help)} | {_default(p)} |" for p in options]
    table = ["| option | meaning | default |", "|---|---|---|", *rows]
    title, usage = f"## rblspi {name}", f"`rblspi {name} {shown}`"
    example = f"```text\n{command.epilog}\n```"
    return "\n\n".join([title, usage, command.help, example, "\n".join(table), ""])


def _option(parameter: Any) -> str:
    names = ", ".join(parameter.opts)
    return names if parameter.is_flag else f"{names} {parameter.metavar or parameter.name.upper()}"


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return _cell(parameter.show_default)
    return "" if parameter.default in (None, False) else f"`{parameter.default}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def write(app: Any) -> None:
    """Write the page unless it is there already."""
    path = Path(app.srcdir) / "commands.md"
    if not path.exists() or path.read_text(encoding="utf-8") != page():
        path.write_text(page(), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the page before the others are read."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
