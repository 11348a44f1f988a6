"""Write results/records.md from results/records.json: ``python docs/generate_records.py``.

``make bench-records DATA=DIR`` measures the figures before it calls this script.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from maxcosine import files

HERE = Path(__file__).parent
DATA, PAGE = HERE / "results" / "records.json", HERE / "results" / "records.md"
WIDTH = 120

OPENING = """# Reading raw records

maxcosine learns from CSV, JSON lines, Parquet and Arrow as they are. This page compares it with what people write by
hand for the same files: scikit-learn, pandas and fastText. Each side has one thread, and reads files that are in the
system's file cache. The sides take turns on one machine, and the best of several turns counts. Seconds of learners are
those of the processor, so that other work does not count; those of text to features are elapsed time. A ratio of 3
means that maxcosine takes a third of the time. Errors are shares of wrong labels on test records.

`docs/generate_records.py` writes this page from `docs/results/records.json`, which `make bench-records DATA=DIR`
measures. DIR contains SMS spam, 20 Newsgroups and Adult as raw records. The parts of the page can be measured one at a
time, with `--only`; each says where it was measured.
"""

TITLES = {
    "hashing": "Text to features",
    "json": "JSON lines to a learner",
    "parquet": "Parquet to a learner",
    "accuracy": "Accuracy",
    "memory": "Memory",
}

Result = dict[str, Any]


def page(results: dict[str, Any]) -> str:
    """Return the whole page."""
    parts = [OPENING.strip(), "## Where it misses its targets, or loses", _losses(results)]
    for name, title in TITLES.items():
        if name in results:
            parts += [f"## {title}", _environment(results[name]["environment"])]
            for section in results[name]["sections"]:
                parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _losses(results: dict[str, Any]) -> str:
    lines = []
    for name in TITLES:
        for section in results.get(name, {"sections": []})["sections"]:
            lines += [f"- {section['title']}: {found}" for found in map(_loss, section["results"]) if found]
    return "\n".join(lines) or "Nowhere: it reaches all targets, and is behind no peer."


def _loss(one: Result) -> str:
    """Say what a result misses, and in what it is behind its peer; nothing if it does neither."""
    found = []
    if one["reached"] is False:
        found.append(f"{_outcome(one)}, and the target is {_target(one)}")
    elif one["peer"] is not None and one["ours"] > one["peer"]:
        found.append(f"{_outcome(one)}, behind the peer")
    if one["error"] is not None and one["peer_error"] is not None and one["error"] > one["peer_error"]:
        found.append(f"an error of {_percent(one['error'])}, where the peer has {_percent(one['peer_error'])}")
    return f"{one['work']}: {'; '.join(found)}." if found else ""


def _outcome(one: Result) -> str:
    """Say what was measured: how many times as fast, or the values."""
    if one["unit"] == "s":
        return f"{one['ratio']:.2f} times as fast"
    peer = "" if one["peer"] is None else f" beside {_value(one, 'peer')}"
    return f"{_value(one, 'ours')}{peer}"


def _target(one: Result) -> str:
    return str(one["target"]).replace("<=", "≤").replace(">=", "≥")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"


def _value(one: Result, side: str) -> str:
    value, unit = one[side], one["unit"]
    if value is None:
        return ""
    if unit == "%":
        return f"{value:.2f} %"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _environment(environment: dict[str, Any]) -> str:
    return _wrap(
        "{processor}, {processors} processors, load {load} before; maxcosine {maxcosine}, Python {python}, "
        "NumPy {numpy}.".format(**environment)
    )


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _section(section: dict[str, Any]) -> list[str]:
    columns = {
        "": lambda one: one["work"],
        "maxcosine": lambda one: _value(one, "ours"),
        "peer": lambda one: _value(one, "peer"),
        "ratio": lambda one: "" if one["ratio"] is None or one["unit"] != "s" else f"**{one['ratio']:.1f}**",
        "target": _target,
        "error": lambda one: _percent(one["error"]),
        "peer's error": lambda one: _percent(one["peer_error"]),
        "more": lambda one: one["detail"],
    }
    cells = {name: [cell(one) for one in section["results"]] for name, cell in columns.items()}
    shown = {name: found for name, found in cells.items() if any(found)}
    return [
        f"### {section['title']}",
        "\n".join(_wrap(f"- {note}", "  ") for note in section["notes"]),
        _table(list(shown), list(zip(*shown.values(), strict=True))),
        *(f"Not measured: {reason}." for reason in section["missing"]),
    ]


def _table(header: list[str], rows: list[tuple[str, ...]]) -> str:
    aligned = ["---" if name in ("", "target", "more") else "---:" for name in header]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, aligned, *rows])


def main() -> None:
    results = json.loads(DATA.read_text(encoding="utf-8"))
    files.write(PAGE, page(results))


if __name__ == "__main__":
    main()
