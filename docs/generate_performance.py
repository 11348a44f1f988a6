"""Write performance.md and its figure from results/performance.json: ``python docs/generate_performance.py``.

No number in performance.md is written by hand. The JSON file is what this command wrote:

    make bench-streams FOLDER=DIR
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maxcosine import files

HERE = Path(__file__).parent
DATA, PICTURE = HERE / "results" / "performance.json", HERE / "results" / "performance.svg"

OURS, PEER = "#0072B2", "#999999"  # Okabe and Ito's blue, and a grey

OPENING = """# Performance

How long it takes from text files to a model on disk, beside Vowpal Wabbit and scikit-learn. Every side is a
process of its own, its start included, and writes its model. The files are in the system's file cache, and
Python's bytecode of all sides is on disk, as pip leaves it; the sides take turns, and the best of {repeats}
counts, of {short_repeats} where that takes us less than a second. Vowpal Wabbit runs with
`--loss_function hinge -b 20` on the same examples in its own format; it parses in a thread of its own. We
learn with `pa1`. Examples have 60 features out of 2^20, as frequent as words are, and labels of a noisy
separator.

This page is made by `docs/generate_performance.py` from `docs/results/performance.json`, which
`make bench-streams` wrote: {environment}.
"""

PLOT = """```{image} results/performance.svg
:alt: Seconds of maxcosine and of its peer for each work
```"""


def page(results: dict[str, Any]) -> str:
    """The whole page."""
    return (
        "\n\n".join(
            [
                OPENING.format(
                    repeats=results["repeats"],
                    short_repeats=results["short_repeats"],
                    environment=_environment(results["environment"]),
                ).strip(),
                PLOT,
                _works(results["works"]),
                "## Where it falls short\n\n" + _shortfalls(results["works"]),
                "## Memory\n\n" + _memory(results["memory"]),
                "## Start\n\n" + _start(results["start"]),
            ]
        )
        + "\n"
    )


def _environment(of: dict[str, Any]) -> str:
    packages = ("maxcosine", "vowpalwabbit", "scikit-learn", "numba", "numpy")
    return (
        f"{of['processor']}, {of['processors']} processors, load {of['load_before']:.1f} before; "
        f"Python {of['python']}, " + ", ".join(f"{name} {of[name]}" for name in packages)
    )


def _works(works: list[dict[str, Any]]) -> str:
    header = ["work", "file", "ours", "peer", "seconds of it", "ratio", "at least", "aim"]
    rows = [
        [
            row["work"],
            f"{row['megabytes']:,.0f} MB",
            f"{row['ours_s']:.2f} s",
            row["peer"],
            f"{row['peer_s']:.2f} s",
            f"**{row['ratio']:.1f}**",
            f"{row['least']:g}",
            f"{row['aim']:g}",
        ]
        for row in works
    ]
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _shortfalls(works: list[dict[str, Any]]) -> str:
    missed = [row for row in works if row["ratio"] < row["least"]]
    said = [
        f"- {row['work']}: {row['ratio']:.1f} times as fast, and {row['least']:g} were wanted."
        for row in missed
    ]
    below_aim = [row["work"] for row in works if row["least"] <= row["ratio"] < row["aim"]]
    if below_aim:
        said.append(f"- Above what was wanted, and below what was aimed at: {'; '.join(below_aim)}.")
    return "\n".join(said) or "Nowhere."


def _memory(memory: dict[str, Any]) -> str:
    total = memory["megabytes"] * memory["times"]
    return (
        f"The peak of `train` is {memory['peak_mb']:.0f} MB on {memory['megabytes']:,} MB of text and "
        f"{memory['peak_many_mb']:.0f} MB on {total:,} MB, {memory['growth']:.2f} times as much (at most "
        f"{memory['most_growth']:g}); {memory['weights_mb']:.0f} MB of it are the weights. At most "
        f"{memory['most_mb']} MB and the weights were wanted."
    )


def _start(start: dict[str, Any]) -> str:
    return (
        f"`train` on a file of three lines takes {start['tiny_s']:.2f} s (at most {start['most_tiny_s']:g}), "
        f"and `train --help` {start['help_s']:.2f} s (at most {start['most_help_s']:g})."
    )


def specification(results: dict[str, Any]) -> dict[str, Any]:
    """The figure, in Vega-Lite."""
    values = [
        {"work": row["work"], "side": side, "seconds": row[f"{side}_s"], "label": f"{row[f'{side}_s']:.2f} s"}
        for row in results["works"]
        for side in ("ours", "peer")
    ]
    bars = {
        "y": {"field": "work", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 320}},
        "yOffset": {"field": "side", "sort": ["ours", "peer"]},
        "x": {"field": "seconds", "type": "quantitative", "title": "seconds, less is better"},
    }
    colour = {
        "field": "side",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["ours", "peer"], "range": [OURS, PEER]},
        "legend": {"orient": "top"},
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 420,
        "height": {"step": 16},
        "background": "white",
        "data": {"values": values},
        "encoding": bars,
        "layer": [
            {"mark": "bar", "encoding": {"color": colour}},
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
