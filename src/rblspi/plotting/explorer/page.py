"""One page that shows what an agent or a policy knows, and answers to sliders and the pointer."""

from __future__ import annotations

import json
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym

from rblspi.core.archive import printable
from rblspi.core.files import write_text
from rblspi.plotting import domain as domains
from rblspi.plotting.domain import DomainArguments
from rblspi.plotting.html import document, text
from rblspi.policies.values import ValuePosterior
from rblspi.rollout.evaluate import Actor, values_of

_CSS = """
.controls { display: grid; gap: .4rem 1.5rem; align-items: end; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); }
.pictures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.pictures > *, .controls > * { min-width: 0; }
"""
_SCRIPTS = ("values.js", "views.js")
#: scripts on the page may run, and nothing may be loaded
_POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' 'unsafe-eval'"
)


def write(
    actor: Actor,
    path: str | PathLike[str],
    env: gym.Env[Any, Any] | str | None = None,
    *,
    reload: float | None = None,
    **domain_arguments: Unpack[DomainArguments],
) -> Path:
    """Write a page with maps that follow sliders, and values that follow the pointer.

    The page is one file and needs no network. It computes what `action_values` says at the point
    under the pointer, wherever that is.

    Parameters
    ----------
    actor : Agent or LinearPolicy
    path : path
    env, **domain_arguments
        As for `rblspi.plotting.domain.find`.
    reload : float, optional
        Seconds after which the page reads its file again, for a file that is written again.
    """
    try:
        from bokeh.resources import Resources
    except ImportError as error:
        raise ImportError(
            'pages to explore need Bokeh: pip install "rblspi[explore]", or use rblspi show'
        ) from error
    from rblspi.plotting.explorer.numbers import page_numbers

    values = values_of(actor).in_basis()  # the page has only its numbers
    policy = values.policy
    domain = domains.find(actor, env, **domain_arguments)
    numbers = page_numbers(values, domain)
    parts, curve = _parts(actor, values, domain, numbers)
    script, body = _embedded(parts, curve, _title(policy), _lead(actor, values))
    ours = "\n".join(files(__package__).joinpath(name).read_text("utf-8") for name in _SCRIPTS)
    again = "" if reload is None else f"setTimeout(() => location.reload(), {1e3 * reload:.0f});"
    resources = Resources(mode="inline", components=["bokeh", "bokeh-widgets"])
    head = "\n".join(
        (
            f"<style>{_CSS}</style>",
            *(f"<script>{script}</script>" for script in resources.js_raw if _is_library(script)),
            f"<script>{ours}\nconst PAGE = {_json(numbers)};\n{again}</script>",
        )
    )
    page = document(_title(policy), f"{body}\n{script}", head=head, security=_POLICY)
    write_text(path, page)
    return Path(path)


def _is_library(script: str) -> bool:
    """Whether a script is more than a call that sets the level of messages, and tells of it."""
    return "set_log_level" not in script[:40]


def _json(value: Any) -> str:
    """JSON that cannot end the script it is part of."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _parts(
    actor: Actor, values: ValuePosterior, domain: domains.Domain, numbers: dict[str, Any]
) -> tuple[dict[str, Any], Any]:
    """The models of the page by their names, and the learning curve of an agent."""
    from rblspi.plotting.explorer import figures

    parts = figures.point_parts(domain)
    if len(domain.names) == 1:
        parts |= figures.line_parts(values, domain, parts["here"])
    else:
        certain = bool(numbers["values"].get("triangles") or numbers["values"].get("std"))
        parts |= figures.map_parts(domain, certain, parts["here"])
        figures.arrows(values, domain, parts["figures"][-1])
    episodes: Any = getattr(actor, "episodes", ())
    return parts, figures.learning_curve(episodes) if len(episodes) else None


def _embedded(parts: dict[str, Any], curve: Any, title: str, lead: str) -> tuple[str, str]:
    """The script that makes the models, and the page with a place for each of them."""
    from bokeh.document import Document
    from bokeh.embed import components
    from bokeh.models import CustomJS

    shown = [model for model in (parts["x"], parts["y"], *parts["sliders"]) if model is not None]
    roots = [*shown, parts["layers"], *parts["figures"], parts["chart"], parts["says"], curve]
    models = [model for model in roots if model is not None]
    document = Document()
    for model in models:
        document.add_root(model)
    begin = CustomJS(args=parts, code=f"window.explorer = new Explorer(PAGE, {_names(parts)})")
    document.js_on_event("document_ready", begin)
    script, divs = components(models, wrap_script=True)
    place = dict(zip(map(id, models), divs, strict=True))

    def boxes(kind: str, *wanted: Any) -> str:
        found = [f"<div>{place[id(model)]}</div>" for model in wanted if model is not None]
        return f'<div class="{kind}">{"".join(found)}</div>' if found else ""

    sections = [
        f'<h1>{text(title)}</h1><p class="lead">{lead}</p>',
        boxes("controls", *shown),
        boxes("layers", parts["layers"]),
        boxes("pictures", *parts["figures"]),
        "<h2>Action values at the pointer</h2>",
        boxes("pictures", parts["says"], parts["chart"]),
        "" if curve is None else "<h2>Learning curve</h2>" + boxes("curve", curve),
    ]
    return script, "\n".join(sections)


def _names(parts: dict[str, Any]) -> str:
    return "{" + ", ".join(parts) + "}"


def _title(policy: Any) -> str:
    name = (policy.environment or {}).get("id") or "a log"
    algorithm = policy.provenance.get("algorithm", "a policy")
    return printable(f"{name}, as {algorithm} sees it")


def _lead(actor: Actor, values: ValuePosterior) -> str:
    policy = values.policy
    steps = policy.provenance.get("transitions", 0)
    episodes = getattr(actor, "episodes", ())
    after = f" in {len(episodes):,} episodes" if len(episodes) else ""
    return (
        f"After {steps:,} transitions{after}, with {values.features.size:,} features of "
        f"{text(type(values.basis or policy.basis).__name__)}. Move the pointer over a picture, or "
        "tap it, to see what every action is worth there."
    ) + (
        ""
        if values.basis is None
        else f" The policy is the agent's plan, which it has in "
        f"{text(type(policy.basis).__name__)}. Where actions are about equally good, another "
        "one may have the higher value here."
    )
