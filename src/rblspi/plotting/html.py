"""Pages that need no other files: their frame, their style, tables and safe text."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path

_CSS = """
:root { color-scheme: light; --soft: #5b6670; --line: #dde2e6; --link: #0b5c8f; }
body { box-sizing: border-box; margin: 0 auto; max-width: 76rem; padding: 2.5rem 2rem 5rem;
  color: #1c2126; font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
p, li { max-width: 48rem; }
nav, .counts { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 1rem 0; }
a, summary { color: var(--link); }
summary { cursor: pointer; margin-bottom: .4rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid var(--line);
  padding: .35rem .6rem; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: .4rem .6rem; vertical-align: top; }
.number { text-align: right; white-space: nowrap; }
.claims > tbody > tr > td:first-child { white-space: nowrap; font-weight: 600; }
.lead, .rule, .note, .aside td, figcaption, th { color: var(--soft); }
.rule { font-size: .92em; margin: .25rem 0 0; }
.note { font-size: .85em; max-width: 16rem; }
.verdict { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; font-weight: 600;
  white-space: nowrap; font-size: .85rem; }
.holds { background: #d5eef0; color: #00565d; }
.does-not-hold { background: #fbe0d3; color: #8a3200; }
.undecided { background: #ebecee; color: #444c54; }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; }
figcaption { font-size: .92rem; max-width: 56rem; }
.wide { overflow-x: auto; }
"""

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, body: str, head: str = "", security: str = _POLICY) -> str:
    """A whole page around its body; unless ``security`` says otherwise, nothing is run or loaded.

    Parameters
    ----------
    title : str
    body, head : str
        HTML; the head comes after the style of all pages.
    security : str
        The content security policy.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{security}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{text(title)}</title>
<style>{_CSS}</style>
{head}
</head>
<body>
{body}
</body>
</html>
"""


def table(
    columns: Sequence[str],
    rows: Iterable[Iterable[object]],
    kinds: Iterable[str] = repeat(""),
) -> str:
    """A table; ``#`` before the name of a column stands for numbers, kinds are classes of rows."""
    sides = ['class="number"' if column.startswith("#") else "" for column in columns]
    head = "".join(f"<th {s}>{c.lstrip('#')}</th>" for s, c in zip(sides, columns, strict=True))
    lines = (
        f'<tr class="{kind}">'
        + "".join(f"<td {side}>{cell}</td>" for side, cell in zip(sides, row, strict=True))
        + "</tr>"
        for row, kind in zip(rows, kinds, strict=False)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def listed(texts: Iterable[str]) -> str:
    """A list of texts."""
    return "<ul>" + "".join(f"<li>{text(each)}</li>" for each in texts) + "</ul>"


def badge(kind: str, words: str) -> str:
    """A verdict on a coloured ground: holds, does not hold or undecided."""
    return f'<span class="verdict {kind.replace(" ", "-")}">{words}</span>'


def picture(path: Path, title: str, caption: str) -> str:
    """An SVG file as a part of the page, with a caption."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f"""<figure><img alt="{text(title)}" src="data:image/svg+xml;base64,{data}">
<figcaption>{text(caption)}</figcaption></figure>"""


def text(value: str) -> str:
    """Escape a text for HTML; equations are not broken across lines."""
    return html.escape(value).replace(" = ", "&nbsp;=&nbsp;").replace(" × ", "&nbsp;×&nbsp;")
