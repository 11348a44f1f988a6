"""Write results.md and its figures from results/*.json: ``python docs/generate_results.py``.

These commands wrote the JSON files:

    maxcosine reproduce mnist --rules all --average --json docs/results/mnist.json
    maxcosine reproduce fashion --rules all --average --json docs/results/fashion.json
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from maxcosine import files
from maxcosine.experiments import figures
from maxcosine.experiments.protocol import PAPER_RULES
from maxcosine.experiments.results import AVERAGED, Results
from maxcosine.experiments.rule_styles import title_of
from maxcosine.experiments.statistics import Difference, differences, focus, mean_ranks, means, spreads
from maxcosine.experiments.summary import summarise

HERE = Path(__file__).parent
NAMES = ("mnist", "fashion")

INTRODUCTION = """# Results

The paper's evidence is one figure: the test mistakes of MCP, PA and aggressive ROMMA on MNIST. Each of the
ten labels is learnt against the rest, in a single pass over 60 buckets of 1,000 examples in random order;
the figure shows the means of 20 orders. The numbers behind it are not available. The numbers below come
from the same protocol, for all rules of this package and their averaged variants, on MNIST and on
Fashion-MNIST. There is no intercept, pixels are not scaled, and every rule has its default parameters. With pixels
from 0 to 255 every step of PA is far below C = 1, so PA-I and PA-II equal PA.

All rules learn from the same orders, so counts are compared in pairs. Intervals are 95 % intervals of the mean
difference, and p-values belong to the same mean (Student's t-test over the orders). p-values are corrected for
the number of comparisons (Holm); intervals are not.

`docs/generate_results.py` generates this page from `docs/results/mnist.json` and
`docs/results/fashion.json`, which hold every count. These commands reproduce them:

"""


def page(found: Iterable[Results]) -> str:
    """Return the page."""
    found = list(found)
    commands = "\n".join(f"    {results.command}" for results in found)
    return "\n".join([INTRODUCTION + commands + "\n", *(_section(results) for results in found)])


def paper_only(results: Results) -> Results:
    """Select the results of the paper's three rules."""
    runs = [run for run in results.runs if run.rule in PAPER_RULES]
    curves = {rule: found for rule, found in results.curves["rules"].items() if rule in PAPER_RULES}
    return replace(
        results,
        protocol={**results.protocol, "rules": list(PAPER_RULES)},
        runs=runs,
        curves={**results.curves, "rules": curves},
    )


def _section(results: Results) -> str:
    paper, name = paper_only(results), results.dataset["name"]
    mean = means(results)
    last = [rule for rule in results.rules if not rule.startswith(AVERAGED)]
    averaged = [rule for rule in results.rules if rule.startswith(AVERAGED)]
    return f"""## {results.dataset["title"]}

{summarise(paper)[0]}

```{{image}} results/{name}-mistakes.svg
:alt: Mean test mistakes of PA, aggressive ROMMA and MCP for each label of {results.dataset["title"]}
```

{_paper_table(paper)}

### All rules, the last hypothesis

{_table(results, last)}

### All rules, averaged

{_table(results, averaged)}

{_effect_of_averaging(mean, last)}

### MCP compared with all others

{_compare_with_all(results)}

### How the experiment was run

{_setup(results)}
"""


def _paper_table(results: Results) -> str:
    mean, spread = means(results), spreads(results)
    rivals = [rule for rule in PAPER_RULES if rule != "mcp"]
    found = {(d.other, d.label): d for d in differences(results, "mcp")}
    header = [
        "label",
        *(title_of(rule) for rule in PAPER_RULES),
        *(f"MCP - {title_of(rule)}" for rule in rivals),
    ]
    rows = []
    for k, label in enumerate(results.labels):
        cells = [f"{mean[rule][k]:.1f} ± {spread[rule][k]:.1f}" for rule in PAPER_RULES]
        rows.append([label, *cells, *(_difference(found[rule, k]) for rule in rivals)])
    totals = [f"{mean[rule].mean():.1f}" for rule in PAPER_RULES]
    rows.append(["all", *totals, *(_difference(found[rule, None]) for rule in rivals)])
    return _markdown(header, rows)


def _difference(d: Difference) -> str:
    return f"{d.mean:+.1f} [{d.low:+.1f}, {d.high:+.1f}], p {_p(d.p)}"


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 1e-3 else f"< 1e{int(np.ceil(np.log10(max(value, 1e-99))))}"


def _table(results: Results, rules: list[str]) -> str:
    """Return a table of rules by labels, the best rule first; the fewest mistakes on each label are bold."""
    mean, ranks = means(results), mean_ranks(results)
    best = np.min([mean[rule] for rule in rules], axis=0)
    rows = []
    for rule in sorted(rules, key=lambda rule: float(mean[rule].mean())):
        cells = [f"**{m:.1f}**" if m == b else f"{m:.1f}" for m, b in zip(mean[rule], best, strict=True)]
        rows.append([f"`{rule}`", *cells, f"{mean[rule].mean():.1f}", f"{ranks[rule]:.1f}"])
    return _markdown(["rule", *results.labels, "mean", "rank of all"], rows)


def _effect_of_averaging(mean: dict[str, np.ndarray], last: list[str]) -> str:
    saved = {rule: 1.0 - mean[AVERAGED + rule].mean() / mean[rule].mean() for rule in last}
    least, most = min(saved, key=lambda rule: saved[rule]), max(saved, key=lambda rule: saved[rule])
    helped = sum(share > 0.0 for share in saved.values())
    return (
        f"Averaging reduces the mistakes of {helped} of {len(last)} rules, from {saved[least]:.0%} for "
        f"`{least}` to {saved[most]:.0%} for `{most}`."
    )


def _compare_with_all(results: Results) -> str:
    rule = focus(results)
    found = differences(results, rule)
    rows = []
    for d in sorted((d for d in found if d.label is None), key=lambda d: d.mean):
        of_labels = [one for one in found if one.other == d.other and one.label is not None]
        fewer = sum(one.high < 0.0 for one in of_labels)
        more = sum(one.low > 0.0 for one in of_labels)
        rows.append([f"`{d.other}`", _difference(d), str(fewer), str(len(of_labels) - fewer - more), str(more)])
    lost = [row[0] for row in rows if row[1].startswith("+")]
    header = ["rule", f"{title_of(rule)} minus rule", "labels fewer", "undecided", "labels more"]
    summary = (
        f"Over all labels {title_of(rule)}, without averaging, makes fewer mistakes than "
        f"{len(rows) - len(lost)} of the {len(rows)} other learners, and more than "
        f"{', '.join(lost) if lost else 'none'}. A label counts as fewer or more if its interval excludes "
        "zero."
    )
    return f"{summary}\n\n{_markdown(header, rows)}"


def _setup(results: Results) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    return (
        f"{len(results.runs):,} runs in {results.seconds:.0f} s on {results.machine['jobs']} processors "
        f"({results.machine['processor']}); {versions}. Seed {results.protocol['seed']}; data with the "
        f"SHA-256 `{results.dataset['sha256']}`."
    )


def _markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    found = [Results.load(HERE / "results" / f"{name}.json") for name in NAMES]
    files.write(HERE / "results.md", page(found))
    for results in found:
        with tempfile.TemporaryDirectory() as drawn:
            figures.save(paper_only(results), drawn)
            picture = (Path(drawn) / "mistakes.svg").read_bytes()
        files.write(HERE / "results" / f"{results.dataset['name']}-mistakes.svg", picture)


if __name__ == "__main__":
    main()
