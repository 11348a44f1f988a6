"""Write the measured part of distribute.md: ``python docs/generate_distribute.py``.

No number in it is written by hand. It comes from what this command wrote:

    python benchmarks/distribute.py --data DIR --text FOLDER --json docs/results/distribute.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import files
from maxcosine.experiments.figures import renderer

HERE = Path(__file__).parent

SECTIONS = """## How many shards, how many rounds

{how_many}

```{{image}} results/distribute.svg
:alt: Test mistakes relative to one pass over all data, by the number of shards, for one to three rounds
```

{tables}

The bound is Lambda / norm(w), relative to that of one pass: the geometric mean over labels. Means of {orders}
orders of the training examples; test mistakes are those of each label against the rest. Rule `mcp_exact`, no
intercept.

## What travels

A part is a model file: 4 bytes in float32 for each feature and each column of weights, twice that with
`average=True`, and a few kilobytes. In the first round every shard sends one; in each later round it gets the
merged one before, too.

{bytes_table}

## Two workers

{throughput}

Measured by `benchmarks/distribute.py` on {processor}, and written by `docs/generate_distribute.py` from
`docs/results/distribute.json`.
"""

ROUNDS = (1, 2, 3)


class Curve:
    """What was found on one set of data."""

    def __init__(self, title: str, found: dict[str, Any]) -> None:
        self.title, self.rows = title, found["rows"]
        self.n_train, self.n_features = found["train"]
        self.n_test = found["test"]
        self.shards = sorted({row["shards"] for row in self.rows})
        self.orders = 1 + max(row["order"] for row in self.rows)

    def mean(self, field: str, shards: int, how: str, round: int) -> float:
        return float(
            np.mean(
                [
                    row[field]
                    for row in self.rows
                    if (row["shards"], row["how"], row["round"]) == (shards, how, round)
                ]
            )
        )

    def relative(self, shards: int, how: str, round: int) -> float:
        """Test mistakes, relative to one pass."""
        return self.mean("mistakes", shards, how, round) / self.mean("mistakes", 1, how, 1)

    def bound(self, shards: int, how: str, round: int) -> float:
        """The bound that is proven, relative to that of one pass."""
        return float(np.exp(self.mean("log_bound", shards, how, round) - self.mean("log_bound", 1, how, 1)))


def sections(found: dict[str, Any]) -> str:
    """What distribute.md includes."""
    curves = [Curve(title, of_title) for title, of_title in found["curves"].items()]
    return SECTIONS.format(
        how_many="\n".join(f"- {_advice(curve)}" for curve in curves),
        tables="\n\n".join(_table(curve) for curve in curves),
        orders=curves[0].orders,
        bytes_table=_bytes_table(curves),
        throughput=_throughput(found["throughput"]),
        processor=found["environment"]["processor"],
    )


def _advice(curve: Curve) -> str:
    def most(how: str, round: int) -> str:
        """The most shards at which, and below, mistakes are within a twentieth of one pass."""
        within = [n for n in curve.shards if curve.relative(n, how, round) <= 1.05]
        unbroken = [n for n, wanted in zip(within, curve.shards, strict=False) if n == wanted]
        return f"{unbroken[-1]} shards" if unbroken[-1] > 1 else "no division"

    limits = {how: " and ".join(most(how, round) for round in (1, 3)) for how in ("certified", "mean")}
    return (
        f"{curve.title}, {curve.n_train:,} examples: within 5 % of one pass, in one round and in three, up "
        f"to {limits['certified']} by `certified`, and up to {limits['mean']} by `mean`."
    )


def _table(curve: Curve) -> str:
    header = [
        "shards",
        *(f"{how}, {round}" for how in ("certified", "mean") for round in ROUNDS),
        "bound by certified, 1",
        "3",
    ]
    one = curve.mean("mistakes", 1, "certified", 1)

    def cells(n: int) -> list[str]:
        relative = [
            f"{curve.relative(n, how, round):.3f}" for how in ("certified", "mean") for round in ROUNDS
        ]
        return [str(n), *relative, *(f"{curve.bound(n, 'certified', round):.2f}" for round in (1, 3))]

    caption = (
        f"**{curve.title}**: test mistakes, relative to the {one:,.1f} of one pass among {curve.n_test:,} "
        "examples, by shards, way of merging and rounds"
    )
    return f"{caption}\n\n{_markdown(header, [cells(n) for n in curve.shards])}"


def _bytes_table(curves: list[Curve]) -> str:
    rows = [
        [
            curve.title,
            f"{curve.n_features:,}",
            *(_megabytes(curve.mean("bytes", n, "certified", round)) for n in (8, 64) for round in (1, 2)),
        ]
        for curve in curves
    ]
    header = [
        "data",
        "features",
        "8 shards, first round",
        "each later one",
        "64 shards, first round",
        "each later one",
    ]
    return _markdown(header, rows)


def _megabytes(n: float) -> str:
    return f"{n / 1e6:,.2f} MB"


def _throughput(found: dict[str, Any]) -> str:
    rates, n_runs = found["megabytes_a_second"], len(found["seconds"]["1"])
    processor = {n: min(of_n) for n, of_n in found["processor_seconds"].items()}
    return (
        f"{found['bytes'] / 1e9:.1f} GB of svmlight text in {found['shards']} shards, workers of one thread "
        f"each: {rates['1']:.0f} MB/s with one worker, {rates['2']:.0f} MB/s with two, "
        f"{found['speedup']:.2f} times as many (the best of {n_runs} runs each, in turn). All workers "
        f"together took {processor['1']:.1f} seconds of processor time, and {processor['2']:.1f}. The "
        f"process that started the job grew by {_megabytes(found['driver_grew_by_bytes'])}; the weights of "
        f"the model take {_megabytes(found['model_bytes'])}."
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(found: dict[str, Any]) -> dict[str, Any]:
    """Mistakes by shards, a panel for each set of data."""
    curves = [Curve(title, of_title) for title, of_title in found["curves"].items()]
    return {
        "hconcat": [_panel(curve) for curve in curves],
        "config": {"view": {"stroke": None}, "font": "sans-serif", "background": "white"},
    }


def _panel(curve: Curve) -> dict[str, Any]:
    rows = [
        {"shards": n, "merged by": how, "rounds": round, "mistakes": curve.relative(n, how, round)}
        for n in curve.shards
        for how in ("certified", "mean")
        for round in ROUNDS
    ]
    lines = {
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "shards", "type": "quantitative", "scale": {"type": "log", "base": 2}},
            "y": {
                "field": "mistakes",
                "type": "quantitative",
                "title": "test mistakes, one pass = 1",
                "scale": {"zero": False},
            },
            "color": {"field": "merged by", "type": "nominal", "scale": {"range": ["#1b6ca8", "#d1495b"]}},
            "strokeDash": {
                "field": "rounds",
                "type": "ordinal",
                "legend": {"symbolType": "stroke"},
                "scale": {"range": [[2, 3], [6, 3], [1, 0]]},
            },
        },
    }
    level = {"mark": {"type": "rule", "color": "#999999"}, "encoding": {"y": {"datum": 1}}}
    return {
        "title": curve.title,
        "width": 230,
        "height": 220,
        "data": {"values": rows},
        "layer": [level, lines],
    }


def main() -> None:
    found = json.loads((HERE / "results" / "distribute.json").read_text())
    files.write(HERE / "results" / "distribute.inc", sections(found))
    files.write(HERE / "results" / "distribute.svg", renderer().vegalite_to_svg(figure(found)))


if __name__ == "__main__":
    main()
