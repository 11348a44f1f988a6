"""One page of HTML, to be read anywhere: everything is inside, and nothing is asked for.

Figures are there twice: as pictures, for paper and for readers without scripts, and as specifications, which
scripts draw in the colours of the reader's choice.
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
from maxcosine.experiments.looks import colour_of, title_of


@dataclass(frozen=True)
class Page:
    """What a page says, in its order."""

    kind: str
    title: str
    run: str
    """What was done."""
    verdict: Iterable[str]
    """What came out, in paragraphs."""
    numbers: Iterable[tuple[str, str, str]]
    """Name, value and detail of what matters most."""
    figures: Sequence[Figure]
    laid_out: str
    """The figures, as HTML."""
    shown: Iterable[str]
    """Rules whose curves are drawn at first."""
    tables: Iterable[str]
    again: str
    """What the command finds."""
    command: str
    facts: Iterable[tuple[str, str]]
    """All that it takes to find the same again."""

    def html(self) -> str:
        """The page as one text."""
        vega, script = _for_script(renderer().javascript_bundle()), _part("page.js")
        return Template(_part("page.html")).substitute(
            policy=escape(_policy(vega, script)),
            kind=escape(self.kind),
            title=escape(self.title),
            style=_part("page.css"),
            run=escape(self.run),
            verdict="\n".join(f"<p>{escape(paragraph)}</p>" for paragraph in self.verdict),
            numbers="\n".join(_number(*number) for number in self.numbers),
            figures=self.laid_out,
            tables="\n".join(self.tables),
            again=escape(self.again),
            command=escape(self.command),
            facts="\n".join(f"<dt>{escape(name)}</dt><dd>{escape(fact)}</dd>" for name, fact in self.facts),
            data=self._data(),
            vega=vega,
            script=script,
        )

    def _data(self) -> str:
        content = {
            "figures": {figure.name: {"spec": figure.spec, "alt": figure.alt} for figure in self.figures},
            "label": ALL,
            "shown": [title_of(rule) for rule in self.shown],
        }
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.replace("<", "\\u003c")  # nothing in it is a tag, whatever a label is called


def _part(name: str) -> str:
    return resources(__package__).joinpath(name).read_text(encoding="utf-8")


# --- what a page is allowed ------------------------------------------------------------------


def _policy(*scripts: str) -> str:
    """No request of any kind, and no script but these."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _for_script(code: str) -> str:
    """JavaScript that does not end its element."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


# --- parts of a page -------------------------------------------------------------------------


def _number(name: str, value: str, detail: str) -> str:
    return (
        f'<div><dt>{escape(name)}</dt><dd class="value">{escape(value)}</dd>'
        f'<dd class="detail">{escape(detail)}</dd></div>'
    )


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds / 60.0:.1f} min"


def figure_of(figure: Figure, select: str = "") -> str:
    """A figure under its title, with what there is to choose beside that."""
    picture = base64.b64encode(renderer().vegalite_to_svg(figure.spec).encode()).decode()
    return f"""<figure>
<div class="top"><h3>{escape(figure.title)}</h3>{select}</div>
<figcaption>{escape(figure.caption)}</figcaption>
<div class="box">
<img class="static" alt="{escape(figure.alt[ALL])}" src="data:image/svg+xml;base64,{picture}">
<div class="chart" id="chart-{figure.name}"></div>
</div>
</figure>"""


def chooser(rules: Iterable[str], shown: Sequence[str]) -> str:
    """Which rules' curves to draw."""
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
    """What is read, and what is sorted by."""

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


def table(
    title: str, note: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], foot: Sequence[Cell] = ()
) -> str:
    """A table that can be sorted by each of its columns; what is at its foot stays there."""
    head = "".join(
        f'<th scope="col"><button type="button">{escape(column)}</button></th>' for column in columns
    )
    body = "\n".join(_table_row(row) for row in rows)
    below = f"<tfoot>{_table_row(foot)}</tfoot>" if foot else ""
    return f"""<h3>{escape(title)}</h3>
<p class="note">{escape(note)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">
<table aria-label="{escape(title)}">
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>{below}
</table>
</div>"""


def _table_row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    return f"<tr>{first.html('th')}{''.join(cell.html() for cell in others)}</tr>"
