"""A report as one HTML file that contains everything it needs and makes no requests.

Each figure is in it twice: as an image, for printing and for readers without scripts, and as a specification
that a script draws in the reader's colour scheme.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files as resources
from string import Template

from maxcosine.experiments.charts import ALL, Figure, renderer
from maxcosine.experiments.rule_styles import colour_of, title_of


@dataclass(frozen=True)
class Page:
    """The content of a report, in the order of the page."""

    kind: str
    title: str
    method: str
    """How the numbers were obtained."""
    summary: Iterable[str]
    """The outcome, in paragraphs."""
    numbers: Iterable[tuple[str, str, str]]
    """The name, value and detail of each key number."""
    figures: Sequence[Figure]
    figures_html: str
    shown: Iterable[str]
    """The rules whose curves are drawn at first."""
    tables: Iterable[str]
    repeat: str
    """What the command reproduces."""
    command: str
    facts: Iterable[tuple[str, str]]
    """What else is needed to reproduce the report."""

    def html(self) -> str:
        """Return the page."""
        vega, script = _escape_script(renderer().javascript_bundle()), _resource("page.js")
        plain = {"kind": self.kind, "title": self.title, "method": self.method, "repeat": self.repeat}
        return Template(_resource("page.html")).substitute(
            {name: escape(text) for name, text in {**plain, "command": self.command}.items()},
            policy=escape(_content_policy(vega, script)),
            style=_resource("page.css"),
            summary="\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in self.summary),
            numbers="\n".join(_key_number(*number) for number in self.numbers),
            figures=self.figures_html,
            tables="\n".join(self.tables),
            facts="\n".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in self.facts),
            data=self._data(),
            vega=vega,
            script=script,
        )

    def _data(self) -> str:
        """Return the figures as JSON for the script."""
        content = {
            "figures": {figure.name: {"spec": figure.spec, "alt": figure.alt} for figure in self.figures},
            "label": ALL,
            "shown": [title_of(rule) for rule in self.shown],
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.replace("<", "\\u003c")  # so that a label cannot contain a tag


def _resource(name: str) -> str:
    return resources(__package__).joinpath(name).read_text(encoding="utf-8")


def _content_policy(*scripts: str) -> str:
    """Return a Content-Security-Policy that forbids all requests and all other scripts."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _escape_script(code: str) -> str:
    """Escape what would end a script element."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


# --- parts of a page -------------------------------------------------------------------------


def _key_number(name: str, value: str, detail: str) -> str:
    return (
        f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="detail">{escape(detail)}</dd></div>'
    )


def duration(seconds: float) -> str:
    """Format a duration in seconds or minutes."""
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds / 60.0:.1f} min"


def figure_html(figure: Figure, select: str = "") -> str:
    """Return a figure with its title and caption; `select` is shown beside the title."""
    image = base64.b64encode(renderer().vegalite_to_svg(figure.spec).encode()).decode()
    return f"""<figure>
<div class="top"><h3>{escape(figure.title)}</h3>{select}</div>
<figcaption>{escape(figure.caption)}</figcaption>
<div class="box">
<img class="static" alt="{escape(figure.alt[ALL])}" src="data:image/svg+xml;base64,{image}">
<div class="chart" id="chart-{figure.name}"></div>
</div>
</figure>"""


def rule_checkboxes(rules: Iterable[str], shown: Sequence[str]) -> str:
    """Return checkboxes for the rules whose curves are drawn."""
    boxes = []
    for rule in rules:
        title, checked = escape(title_of(rule)), " checked" if rule in shown else ""
        boxes.append(
            f'<label><input type="checkbox" autocomplete="off" value="{title}"{checked}>'
            f'<span class="swatch" style="background:{colour_of(rule)}"></span>{title}</label>'
        )
    return f'<fieldset class="scripted-only"><legend>Curves of</legend><div>{"".join(boxes)}</div></fieldset>'


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the value that it is sorted by."""

    text: str
    value: float | str
    detail: str = ""
    best: bool = False

    def html(self, tag: str = "td") -> str:
        scope = ' scope="row"' if tag == "th" else ""
        best = ' class="best"' if self.best else ""
        detail = f" <small>{escape(self.detail)}</small>" if self.detail else ""
        return (
            f'<{tag}{scope}{best} data-value="{escape(str(self.value))}">{escape(self.text)}{detail}</{tag}>'
        )


Row = Sequence[Cell]


def table_html(title: str, note: str, columns: Sequence[str], rows: Iterable[Row], foot: Row = ()) -> str:
    """Return a table that can be sorted by each column; the foot stays at the bottom."""
    head = "".join(f'<th scope="col"><button type="button">{escape(name)}</button></th>' for name in columns)
    body = "\n".join(_row_html(row) for row in rows)
    return f"""<h3>{escape(title)}</h3>
<p class="note">{escape(note)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">
<table aria-label="{escape(title)}">
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>{f"<tfoot>{_row_html(foot)}</tfoot>" if foot else ""}
</table>
</div>"""


def _row_html(cells: Row) -> str:
    first, *others = cells
    return f"<tr>{first.html('th')}{''.join(cell.html() for cell in others)}</tr>"
