"""Write the measured part of shards.md and its figure: ``python docs/generate_distribute.py``.

The numbers come from results/distribute.json, which this command wrote:

    python benchmarks/shards.py --data DIR --text FOLDER --json docs/results/distribute.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxcosine import files

RESULTS = Path(__file__).parent / "results"
HOW, ROUNDS = ("certified", "mean"), (1, 2, 3)

SECTIONS = """## Mistakes and bounds

The largest number of shards at which test mistakes stay within 5 % of one pass over all examples:

{limits}

```{{image}} results/distribute.svg
:alt: Test mistakes relative to one pass over all data, by the number of shards, for one to three rounds
```

{tables}

Test mistakes are those of each label against the rest. The bound is Lambda / norm(w), relative to one pass;
the table shows its geometric mean over the labels. All numbers are means over {orders} orders of the training
examples. The rule is `mcp_exact`, without an intercept.

## Bytes sent

A shard's result is a model file: 4 bytes in float32 for each feature and each column of weights, twice that
with `average=True`, and a few kilobytes. In the first round every shard sends one file. In each later round
it also receives the merged model of the round before.

{bytes_table}

## Two workers

{throughput}

`benchmarks/shards.py` measured this on {processor}. `docs/generate_distribute.py` wrote the text from
`docs/results/distribute.json`.
"""


class Curve(NamedTuple):
    """The results for one data set."""

    title: str
    n_train: int
    n_features: int
    n_test: int
    rows: list[dict[str, Any]]

    @property
    def shards(self) -> list[int]:
        return sorted({row["shards"] for row in self.rows})

    def mean(self, field: str, shards: int, how: str, n_rounds: int) -> float:
        """The mean of a field over all orders of the examples."""
        key = (shards, how, n_rounds)
        rows = [row for row in self.rows if (row["shards"], row["how"], row["round"]) == key]
        return float(np.mean([row[field] for row in rows]))

    def mistakes(self, shards: int, how: str, n_rounds: int) -> float:
        """Test mistakes, relative to one pass."""
        return self.mean("mistakes", shards, how, n_rounds) / self.mean("mistakes", 1, how, 1)

    def bound(self, shards: int, how: str, n_rounds: int) -> float:
        """The proven bound, relative to one pass."""
        logs = self.mean("log_bound", shards, how, n_rounds), self.mean("log_bound", 1, how, 1)
        return float(np.exp(logs[0] - logs[1]))

    def limit(self, how: str, n_rounds: int) -> int:
        """The largest number of shards up to which mistakes are within 5 % of one pass."""
        limit = 1
        for shards in self.shards:
            if self.mistakes(shards, how, n_rounds) > 1.05:
                break
            limit = shards
        return limit


def curves_of(results: dict[str, Any]) -> list[Curve]:
    return [Curve(title, *found["train"], found["test"], found["rows"]) for title, found in results["curves"].items()]


def sections(results: dict[str, Any]) -> str:
    """The text that shards.md includes."""
    curves = curves_of(results)
    return SECTIONS.format(
        limits=_limits(curves),
        tables="\n\n".join(_table(curve) for curve in curves),
        orders=1 + max(row["order"] for row in curves[0].rows),
        bytes_table=_bytes_table(curves),
        throughput=_throughput(results["throughput"]),
        processor=results["environment"]["processor"],
    )


def _limits(curves: list[Curve]) -> str:
    kinds = [(how, n_rounds) for how in HOW for n_rounds in (1, 3)]
    header = ["data", "examples", *(f"{how}, {_rounds(n_rounds)}" for how, n_rounds in kinds)]
    return _markdown(
        header,
        [
            [curve.title, f"{curve.n_train:,}", *(str(curve.limit(how, n_rounds)) for how, n_rounds in kinds)]
            for curve in curves
        ],
    )


def _rounds(n_rounds: int) -> str:
    return "1 round" if n_rounds == 1 else f"{n_rounds} rounds"


def _table(curve: Curve) -> str:
    kinds = [(how, n_rounds) for how in HOW for n_rounds in ROUNDS]
    header = ["shards", *(f"{how}, {_rounds(n_rounds)}" for how, n_rounds in kinds)]
    header += [f"bound, certified, {_rounds(n_rounds)}" for n_rounds in (1, 3)]
    rows = [
        [
            str(n),
            *(f"{curve.mistakes(n, how, n_rounds):.3f}" for how, n_rounds in kinds),
            *(f"{curve.bound(n, 'certified', n_rounds):.2f}" for n_rounds in (1, 3)),
        ]
        for n in curve.shards
    ]
    one_pass = curve.mean("mistakes", 1, "certified", 1)
    caption = (
        f"**{curve.title}**: test mistakes relative to one pass, which makes {one_pass:,.1f} on "
        f"{curve.n_test:,} examples"
    )
    return f"{caption}\n\n{_markdown(header, rows)}"


def _bytes_table(curves: list[Curve]) -> str:
    header = ["data", "features"]
    header += [f"{n} shards, {which} round" for n in (8, 64) for which in ("first", "later")]
    return _markdown(
        header,
        [
            [
                curve.title,
                f"{curve.n_features:,}",
                *(_megabytes(curve.mean("bytes", n, "certified", number)) for n in (8, 64) for number in (1, 2)),
            ]
            for curve in curves
        ],
    )


def _megabytes(n: float) -> str:
    return f"{n / 1e6:,.2f} MB"


def _throughput(found: dict[str, Any]) -> str:
    rates, n_runs = found["megabytes_a_second"], len(found["seconds"]["1"])
    processor = {n: min(times) for n, times in found["processor_seconds"].items()}
    return (
        f"{found['bytes'] / 1e9:.1f} GB of svmlight text in {found['shards']} shards: one worker with one "
        f"thread learns {rates['1']:.0f} MB/s, two workers learn {rates['2']:.0f} MB/s, "
        f"{found['speedup']:.2f} times as much (best of {n_runs} runs). The workers took "
        f"{processor['1']:.1f} and {processor['2']:.1f} seconds of processor time. The process that started "
        f"the job grew by {_megabytes(found['driver_grew_by_bytes'])}; the weights of the model take "
        f"{_megabytes(found['model_bytes'])}."
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(results: dict[str, Any]) -> dict[str, Any]:
    """Mistakes by the number of shards, one panel for each data set."""
    return {
        "hconcat": [_panel(curve) for curve in curves_of(results)],
        "config": {"view": {"stroke": None}, "font": "sans-serif", "background": "white"},
    }


def _panel(curve: Curve) -> dict[str, Any]:
    rows = [
        {"shards": n, "merged by": how, "rounds": n_rounds, "mistakes": curve.mistakes(n, how, n_rounds)}
        for n in curve.shards
        for how in HOW
        for n_rounds in ROUNDS
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
    import vl_convert

    results = json.loads((RESULTS / "distribute.json").read_text(encoding="utf-8"))
    files.write(RESULTS / "distribute.inc", sections(results))
    files.write(RESULTS / "distribute.svg", vl_convert.vegalite_to_svg(figure(results)))


if __name__ == "__main__":
    main()
