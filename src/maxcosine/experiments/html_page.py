"""A report as one HTML file that contains everything it needs and makes no requests.

Each figure is in it twice: as an image, for printing and for readers without scripts, and as a specification
that a script draws in the reader's colour scheme.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from importlib.resources import files as resources
from string import Template

from maxcosine.certificate_text import mistake_bound
from maxcosine.experiments.charts import ALL, ALL_LABELS, Figure, renderer
from maxcosine.experiments.rule_styles import colour_of, title_of


def page(
    figures: Sequence[Figure],
    tables: Iterable[str],
    *,
    summary: Iterable[str],
    numbers: Iterable[tuple[str, str, str]],
    facts: Iterable[tuple[str, str]],
    rules: Sequence[str],
    shown: Sequence[str],
    labels: Sequence[str] = (),
    sections: Iterable[tuple[str, str, str]] = (),
    **texts: str,
) -> str:
    """Return a report.

    Parameters
    ----------
    summary : the outcome, in paragraphs
    numbers : the name, value and detail of each key number
    facts : what is needed to reproduce the report, besides the command
    rules, shown : all rules, and those whose curves are drawn at first
    labels : the labels that the reader can choose
    sections : the id, title and HTML of sections before the figures
    texts : `kind` and `title` of the report, `method`, `command`, and what the command can `repeat`
    """
    sections, content = list(sections), "\n".join(tables)
    bundle, script = renderer().javascript_bundle(), _resource("page.js")
    vega = bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")  # these would end the script
    return Template(_resource("page.html")).substitute(
        {name: escape(text) for name, text in texts.items()},
        policy=escape(_content_policy(vega, script)),
        style=_resource("page.css"),
        links="".join(f'<a href="#{name}">{escape(title)}</a> ' for name, title, _ in sections),
        sections="\n".join(_section_html(*one) for one in sections),
        summary="\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in summary),
        numbers="\n".join(
            f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
            f'<dd class="detail">{escape(detail)}</dd></div>'
            for name, value, detail in numbers
        ),
        figures="\n".join(_figures_html(figures, rules, shown, labels)),
        tables=_section_html("tables", "Tables", f"{SORTING}\n{content}") if content else "",
        tables_link='<a href="#tables">Tables</a> ' if content else "",
        facts="\n".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in facts),
        data=_data(figures, shown),
        vega=vega,
        script=script,
    )


SORTING = '<p class="note scripted-only">Click a heading to sort by its column; click again to reverse the order.</p>'


def _section_html(name: str, title: str, content: str) -> str:
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{escape(title)}</h2>
{content}
</section>"""


def _resource(name: str) -> str:
    return resources(__package__).joinpath(name).read_text(encoding="utf-8")


def _data(figures: Sequence[Figure], shown: Sequence[str]) -> str:
    """Return the figures as JSON for the script."""
    content = {
        "figures": {figure.name: {"spec": figure.spec, "alt": figure.alt} for figure in figures},
        "label": ALL,
        "shown": [title_of(rule) for rule in shown],
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # so that a label cannot contain a tag


def _content_policy(*scripts: str) -> str:
    """Return a Content-Security-Policy that forbids all requests and all other scripts."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def duration(seconds: float) -> str:
    """Format a duration in seconds or minutes."""
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds / 60.0:.1f} min"


def _figures_html(
    figures: Iterable[Figure], rules: Sequence[str], shown: Sequence[str], labels: Sequence[str]
) -> Iterable[str]:
    """Yield the figures without curves, checkboxes for the rules, and the figures with curves."""
    curves = []
    for figure in figures:
        html = _figure_html(figure, _label_select(labels) if len(figure.alt) > 1 else "")
        if figure.has_curves:
            curves.append(html)
        else:
            yield html
    if curves:
        yield _rule_checkboxes(rules, shown) if len(rules) > 1 else ""
        yield from ('<div class="curves">', *curves, "</div>")


def _figure_html(figure: Figure, select: str) -> str:
    image = base64.b64encode(renderer().vegalite_to_svg(figure.spec).encode()).decode()
    return f"""<figure>
<div class="top"><h3>{escape(figure.title)}</h3>{select}</div>
<figcaption>{escape(figure.caption)}</figcaption>
<div class="box">
<img class="static" alt="{escape(figure.alt[ALL])}" src="data:image/svg+xml;base64,{image}">
<div class="chart" id="chart-{figure.name}"></div>
</div>
</figure>"""


def _label_select(labels: Sequence[str]) -> str:
    options = [(ALL, ALL_LABELS), *enumerate(labels)]
    return (
        '<label class="scripted-only">label <select autocomplete="off">'
        + "".join(f'<option value="{index}">{escape(label)}</option>' for index, label in options)
        + "</select></label>"
    )


def _rule_checkboxes(rules: Sequence[str], shown: Sequence[str]) -> str:
    boxes = []
    for rule in rules:
        title, checked = escape(title_of(rule)), " checked" if rule in shown else ""
        boxes.append(
            f'<label><input type="checkbox" autocomplete="off" value="{title}"{checked}>'
            f'<span class="swatch" style="background:{colour_of(rule)}"></span>{title}</label>'
        )
    return f'<fieldset class="scripted-only"><legend>Curves of</legend><div>{"".join(boxes)}</div></fieldset>'


MISTAKE_BOUND = (
    "The mistake bound is proven for mistakes while learning, on examples of norm at most R that a hyperplane through "
    "the origin separates with margin γ."
)
"""Explains the column of `mistake_bound_cell`."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the value that it is sorted by, which may be the text."""

    text: str
    value: float | None = None
    detail: str = ""
    best: bool = False

    def html(self, tag: str = "td") -> str:
        scope = ' scope="row"' if tag == "th" else ""
        best = ' class="best"' if self.best else ""
        detail = f" <small>{escape(self.detail)}</small>" if self.detail else ""
        value = escape(self.text if self.value is None else str(self.value))
        return f'<{tag}{scope}{best} data-value="{value}">{escape(self.text)}{detail}</{tag}>'


def mistake_bound_cell(gain: float | Fraction | None) -> Cell:
    """Return a cell with the mistake bound of a rule of this gain; no bound is sorted as infinitely many mistakes."""
    return Cell(mistake_bound(gain), math.inf if gain is None else float(1 / gain))


def table_html(
    title: str, note: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], foot: Sequence[Cell] = ()
) -> str:
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


def _row_html(cells: Sequence[Cell]) -> str:
    first, *others = cells
    return f"<tr>{first.html('th')}{''.join(cell.html() for cell in others)}</tr>"
