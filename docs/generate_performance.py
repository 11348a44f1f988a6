"""Write performance.md and its figure from results/performance.json: ``python docs/generate_performance.py``.

All numbers come from that file, which these commands write:

    python benchmarks/run.py --data DIR --json docs/results/performance.json
    make bench-streams FOLDER=DIR
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maxcosine import files

HERE = Path(__file__).parent
DATA, PICTURE = HERE / "results" / "performance.json", HERE / "results" / "performance.svg"

BLUE = "#0072B2"

OPENING = """# Performance

maxcosine compared with other libraries. Both sides run on the same machine, in turns, and the best of several
runs counts. A ratio of 3 means that maxcosine takes a third of the time.

`docs/generate_performance.py` writes this page from `docs/results/performance.json`, which
`make bench` and `make bench-streams` measure.

```{image} results/performance.svg
:alt: How many times as fast as the other library maxcosine is, for each work
```
"""

TITLES = {"streams": "Streams of files", "bench": "Data in memory"}


def page(results: dict[str, Any]) -> str:
    """Return the whole page."""
    parts = [OPENING.strip(), "## Below the targets", _shortfalls(results)]
    for name, title in TITLES.items():
        if name in results:
            parts += [f"## {title}", _environment(results[name]["environment"])]
            for section in results[name]["sections"]:
                parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _shortfalls(results: dict[str, Any]) -> str:
    missed = [one for one in _all_results(results) if one["reached"] is False]
    lines = [f"- {one['work']}: {_measured(one)}; the target is {one['target']}." for one in missed]
    return "\n".join(lines) or "None: all targets are reached."


def _all_results(results: dict[str, Any]) -> list[dict[str, Any]]:
    sections = [section for name in TITLES if name in results for section in results[name]["sections"]]
    return [one for section in sections for one in section["results"]]


def _measured(one: dict[str, Any]) -> str:
    ratio = [] if one["ratio"] is None else [f"{one['ratio']:.1f} times as fast"]
    return ", ".join([*ratio, _value(one, "ours")])


def _value(one: dict[str, Any], side: str) -> str:
    value, unit = one[side], one["unit"]
    if value is None:
        return ""
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _environment(environment: dict[str, Any]) -> str:
    return (
        "{processor}, {processors} processors, load {load} before; maxcosine {maxcosine}, Python {python}, "
        "NumPy {numpy}.".format(**environment)
    )


def _section(section: dict[str, Any]) -> list[str]:
    rows = [
        ["", "maxcosine", "peer", "ratio", "target"],
        ["---", "---:", "---:", "---:", "---"],
        *(
            [
                one["work"],
                _value(one, "ours"),
                _value(one, "peer"),
                "" if one["ratio"] is None else f"**{one['ratio']:.1f}**",
                one["target"].replace("<=", "≤").replace(">=", "≥"),
            ]
            for one in section["results"]
        ),
    ]
    return [
        f"### {section['title']}",
        "\n".join(f"- {note}" for note in section["notes"]),
        "\n".join(f"| {' | '.join(row)} |" for row in rows),
        *(f"Not measured: {reason}." for reason in section["missing"]),
    ]


def specification(results: dict[str, Any]) -> dict[str, Any]:
    """Return the figure, in Vega-Lite."""
    values = [
        {"work": one["work"], "ratio": one["ratio"], "label": f"{one['ratio']:.1f}"}
        for one in _all_results(results)
        if one["least"] is not None
    ]
    work = {"field": "work", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 420,
        "height": {"step": 24},
        "background": "white",
        "data": {"values": values},
        "encoding": {
            "y": work,
            "x": {"field": "ratio", "type": "quantitative", "title": "times as fast as the other library"},
        },
        "layer": [
            {"mark": {"type": "bar", "color": BLUE}},
            {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {"text": {"field": "label"}}},
        ],
    }


def main() -> None:
    import vl_convert

    results = json.loads(DATA.read_text(encoding="utf-8"))
    files.write(HERE / "performance.md", page(results))
    files.write(PICTURE, vl_convert.vegalite_to_svg(specification(results)))


if __name__ == "__main__":
    main()
