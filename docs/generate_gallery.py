"""Write gallery/derived.md and the pictures of the band: ``python docs/generate_gallery.py``.

The counts come from results/gallery.json, which ``make gallery DATA=DIR`` measures before it calls this script. What is
proven of each learner is proven anew.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np

from maxcosine import RULES, files
from maxcosine.derive import Derivation
from maxcosine.experiments import charts
from maxcosine.experiments.band_figure import band
from maxcosine.experiments.charts import ALL, Figure
from maxcosine.experiments.rule_styles import join_words
from maxcosine.experiments.statistics import mean_test

HERE = Path(__file__).parent
DATA, PAGE = HERE / "results" / "gallery.json", HERE / "gallery" / "derived.md"
BASE = "mcp_exact"
KINDS = {"last": "last hypothesis", "averaged": "averaged hypothesis"}

REASONS = {
    "damped_mcp": "The further an example lies on the wrong side, the less it is trusted: it may be noise. Steps on "
    "margins are shortened by the same formula. Built in, with threshold 0.7.",
    "soft_mcp": "MCP stops at v = 1/2 with a full step. Here the step falls to 0 where the margin reaches its ceiling. "
    "Built in.",
    "damped_soft": "Both ideas at once. With a = 2 the damping is the strongest of this form that keeps m = 1; the "
    "proof covers every a from 0 to 2.",
    "root_soft": "A milder damping: a root in place of the quotient. The curve is not rational, so its proof needs "
    "intervals.",
    "forgiving_romma": "NAROMMA, but a negative projection is taken for 0: contradicting examples get MCP's step "
    "instead of a long one.",
    "leaning_mcp": "The opposite direction: on mistakes the bound keeps a share b of the projection, which makes steps "
    "longer, half of the way from MCP to NAROMMA. The proof covers every b from 0 to 1.",
}
"""Why each learner might be good; written before it was measured."""

INTRODUCTION = """# Gallery of derived learners

Six learners that [`maxcosine.derive`](../tutorial/derive.md) has derived and proven, and how they do beside the rules
that they change. Every one has the Perceptron's mistake bound. A mistake bound says nothing about test mistakes on
noisy data: some of these learners win there, others lose, and
[the tables](#where-they-win-and-where-they-lose) say which.

`damped_mcp` and `soft_mcp` were chosen with the test examples of MNIST in view, among several hundred candidates: their
numbers on MNIST are optimistic. The other four vary them and MCP. They were written down before they were measured, and
not changed after.

```{literalinclude} learners.py
:language: python
:pyobject: learners
```

## The curves
"""

PROTOCOL = """## How it was measured

All learners read the same orders of the training examples, in one pass, without an intercept, with features as they
are and parameters at their defaults. MNIST and Fashion-MNIST are learnt as in [Results](../results.md): each of the ten
labels against the rest, in {image_orders} orders of buckets of 1,000 examples; counts are means over labels. The sparse
sets have two classes and are learnt in {sparse_orders} orders of single rows.
{divided} come without test examples: a fifth of their rows, drawn once, is kept for
the test. The test examples are the same in all orders.

Differences are paired, and intervals are 95 % intervals of the mean difference (Student). They are not corrected: of
the {comparisons} comparisons in the first two tables, about {chance} would exclude 0 by chance if all learners were
equal.

{sizes}

This command measures the counts and writes this page. DIR is a folder with the data sets; `docs/results/gallery.json`
has every count, and the checksums of the data.

    {command}

Versions: {versions}; {processor}; seed {seed}.
"""


def derivations() -> list[Derivation]:
    """Return the learners of the gallery."""
    found: list[Derivation] = runpy.run_path(str(HERE / "gallery" / "learners.py"))["learners"]()
    return found


def gallery_band(learners: list[Derivation]) -> Figure:
    """Draw the learners, and the two rules that they lie between."""
    return band([RULES[BASE], RULES["naromma"], *(RULES.get(one.name, one.rule) for one in learners)])


def tutorial_band(learners: list[Derivation]) -> Figure:
    """Draw the curves that the tutorial speaks of."""
    drawn = next(one.rule for one in learners if one.name == "damped_soft")
    return band([*(RULES[name] for name in (BASE, "naromma", "damped_mcp")), drawn])


def page(results: dict[str, Any], learners: list[Derivation]) -> str:
    """Return the page."""
    figure = gallery_band(learners)
    parts = [INTRODUCTION.strip(), _picture(figure), figure.caption, _proofs(learners)]
    parts += [_where(results, learners), *(_set_section(results, one) for one in results["sets"]), _protocol(results)]
    return "\n\n".join(parts).strip() + "\n"


def _picture(figure: Figure) -> str:
    return f"```{{image}} ../results/gallery-band.svg\n:alt: {figure.alt[ALL]}\n```"


def _proofs(learners: list[Derivation]) -> str:
    """Return each derivation: why, the algorithm, and what is proven by which method."""
    parts = [
        "## How they were derived, and what is proven",
        "A step is w <- w + norm(w) x y a, with g = y (w.a) / norm(w), sq_x = norm(a)^2 and ell = Lambda / norm(w). "
        "[The theory](../explanation/theory.md#deriving-by-machine) explains the methods of proof. Proofs are about "
        "real arithmetic.",
    ]
    for one in learners:
        origin = f"Maximises `{one.bound}`" if one.bound is not None else "A curve in the band"
        rows = [[_condition(case.conditions), _step(case.step)] for case in one.cases]
        parts += [f"### `{one.name}`", REASONS[one.name], f"{origin}; it may move {_when(one)}."]
        parts += [_markdown(["if", "step"], rows, align="---"), _claims(one)]
    return "\n\n".join(parts)


def _when(one: Derivation) -> str:
    return f"when {_condition(one.when)}" if one.when else "at any time"


def _condition(conditions: tuple[Any, ...]) -> str:
    return " and ".join(f"`{one}`" for one in conditions) or "always"


def _step(step: Any) -> str:
    return "none" if step == 0 else "w becomes y a" if str(step) == "oo" else f"`x = {step}`"


def _claims(one: Derivation) -> str:
    """Return what the mistake bound rests on."""
    needed = [one.claim(name) for name in ("forward", "moves", "rises", "gain")]
    lines = [f"- {claim.statement}: {claim.verdict}" for claim in needed]
    return "\n".join([*lines, f"- hence **{one.mistake_bound()}**"])


def _where(results: dict[str, Any], learners: list[Derivation]) -> str:
    """Return the differences to the base in percent, and the same in words."""
    names = [one.name for one in learners]
    parts = [
        "## Where they win, and where they lose",
        f"Test mistakes compared with `{BASE}`, in percent; negative is better, and bold numbers have an interval that "
        "excludes 0.",
    ]
    for kind, title in KINDS.items():
        rows = []
        for rule in [*names, *(one for one in results["rules"] if one not in (*names, BASE))]:
            rows.append([f"`{rule}`", *(_percent(one, rule, kind) for one in results["sets"])])
        header = [title, *(one["title"] for one in results["sets"])]
        parts.append(_markdown(header, rows))
    parts.append(_small_counts(results))
    parts.append(f"In words, each beside `{BASE}`:")
    parts.append("\n".join(_in_words(results, rule) for rule in names))
    best = [f"{one['title']} {join_words(_best(one, 'averaged', results['rules']))}" for one in results["sets"]]
    parts.append(f"Averaged, the fewest mistakes of all are made by: {'; '.join(best)}.")
    return "\n\n".join(parts)


def _small_counts(results: dict[str, Any]) -> str:
    means = {one["title"]: [_counts(one, BASE, kind).mean() for kind in KINDS] for one in results["sets"]}
    small = [f"On {title} `{BASE}` makes {a:.1f} and {b:.1f} mistakes" for title, (a, b) in means.items() if b < 5.0]
    return f"{join_words(small)}: there, percentages mean little."


def _best(one: dict[str, Any], kind: str, rules: list[str]) -> list[str]:
    means = {rule: _counts(one, rule, kind).mean() for rule in rules}
    return [f"`{rule}`" for rule in rules if means[rule] == min(means.values())]


def _in_words(results: dict[str, Any], rule: str) -> str:
    lines = []
    for kind, title in KINDS.items():
        sides: dict[str, list[str]] = {"fewer on": [], "more on": [], "undecided on": []}
        for one in results["sets"]:
            low, high = _interval(one, rule, kind)
            sides["fewer on" if high < 0.0 else "more on" if low > 0.0 else "undecided on"].append(one["title"])
        lines.append(f"{title}: " + ", ".join(f"{side} {join_words(sets)}" for side, sets in sides.items() if sets))
    return f"- `{rule}`, {'; '.join(lines)}."


def _set_section(results: dict[str, Any], one: dict[str, Any]) -> str:
    rows = []
    for rule in results["rules"]:
        cells = [f"`{rule}`"]
        for kind in KINDS:
            cells += [f"{_counts(one, rule, kind).mean():.1f}", _difference(one, rule, kind)]
        rows.append([*cells, f"{_counts(one, rule, 'learning').mean():.1f}"])
    header = ["learner", "last", f"minus `{BASE}`", "averaged", f"minus averaged `{BASE}`", "while learning"]
    about = f"{one['test']:,} test examples; mean mistakes, and 95 % intervals of the differences."
    return f"### {one['title']}\n\n{about}\n\n{_markdown(header, rows)}"


def _protocol(results: dict[str, Any]) -> str:
    sets = results["sets"]
    orders = {one["name"]: np.shape(one["counts"][BASE]["last"])[1] for one in sets}
    comparisons = len(KINDS) * len(sets) * (len(results["rules"]) - 1)
    return PROTOCOL.strip().format(
        image_orders=orders["mnist"],
        sparse_orders=orders[sets[-1]["name"]],
        divided=join_words([one["title"] for one in sets if one["divided"]]),
        comparisons=comparisons,
        chance=round(0.05 * comparisons),
        sizes=_markdown(
            ["data", "training examples", "test examples", "features", "content"],
            [[one["title"], *(f"{one[n]:,}" for n in ("train", "test", "features")), one["content"]] for one in sets],
            align="---",
        ),
        command=results["command"],
        versions=", ".join(f"{name} {number}" for name, number in results["versions"].items()),
        processor=results["processor"],
        seed=results["seed"],
    )


def _counts(one: dict[str, Any], rule: str, kind: str) -> np.ndarray:
    return np.array(one["counts"][rule][kind])


def _interval(one: dict[str, Any], rule: str, kind: str) -> tuple[float, float]:
    low, high, _ = mean_test(_counts(one, rule, kind) - _counts(one, BASE, kind))
    return low, high


def _difference(one: dict[str, Any], rule: str, kind: str) -> str:
    if rule == BASE:
        return ""
    low, high = _interval(one, rule, kind)
    mean = (_counts(one, rule, kind) - _counts(one, BASE, kind)).mean()
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _percent(one: dict[str, Any], rule: str, kind: str) -> str:
    low, high = _interval(one, rule, kind)
    share = _counts(one, rule, kind).mean() / _counts(one, BASE, kind).mean() - 1.0
    shown = f"{share:+.1%}" if abs(share) < 0.1 else f"{share:+.0%}"
    return f"**{shown}**" if low > 0.0 or high < 0.0 else shown


def _markdown(header: list[str], rows: list[list[str]], align: str = "---:") -> str:
    lines = [header, ["---", *[align] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    results, learners = json.loads(DATA.read_text(encoding="utf-8")), derivations()
    files.write(PAGE, page(results, learners))
    for name, figure in ("gallery-band", gallery_band(learners)), ("band", tutorial_band(learners)):
        # A reader's font may be wider than the renderer's.
        legend = {**charts.CONFIG["legend"], "columnPadding": 50}
        spec = {**figure.spec, "config": {**charts.CONFIG, "legend": legend}}
        files.write(HERE / "results" / f"{name}.svg", charts.renderer().vegalite_to_svg(spec))


if __name__ == "__main__":
    main()
