"""Results of commands, for people: names and values, and tables."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from maxcosine.certificate_text import mistake_bound, rounded_down, rounded_up
from maxcosine.cli.display import console
from maxcosine.cli.terminal import tell, visible

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from maxcosine.experiments.results import Results

MAX_RULE_COLUMNS = 5
"""With more rules than this, rules are the rows of the table, and labels its columns."""

MAX_CONFUSION_CLASSES = 12
"""With more classes than this, the confusion matrix is not shown."""


def print_outcome(
    outcome: dict[str, Any], show: Callable[[dict[str, Any]], None], *, json: bool, quiet: bool = False
) -> None:
    """Print the outcome of a command: as JSON, or as `show` does for people, unless they want it `quiet`."""
    if json:
        typer.echo(json_module.dumps(outcome))
    elif not quiet:
        show(outcome)


def new_table(title: str, columns: Sequence[str], **options: Any) -> Table:
    """Return a table without rows: text in the first column, numbers in the others."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for k, name in enumerate(columns):
        table.add_column(plain(name), justify="right" if k else "left", **options)
    return table


def plain(text: str) -> Text:
    """Return text for a table: without markup, and without characters that could control a terminal."""
    from rich.text import Text

    return Text(visible(text))


def _first(words: Sequence[str]) -> str:
    """Join words; only the first of many."""
    return ", ".join([*words[:10], *(["..."] if len(words) > 10 else [])])


def _show_pairs(rows: dict[str, str | None]) -> None:
    """Print names and values; values that are empty are left out."""
    width = max(map(len, rows))
    for name, value in rows.items():
        if value:
            typer.echo(f"{name:{width}}  {visible(value)}")


def show_outcome(outcome: dict[str, Any]) -> None:
    """Print the outcome of a training."""
    classes, speed = outcome["classes"], outcome["megabytes_per_second"]
    ceilings = np.ravel(outcome["margin_ceiling"]).tolist()
    _show_pairs(
        {
            "examples": f"{outcome['examples']:,}",
            "stopped": outcome["stopped"],
            "classes": f"{len(classes)}: {_first(classes)}",
            "features": f"{outcome['features']:,}",
            "rule": outcome["rule"],
            "progressive error": f"{outcome['progressive_error']:.3%}",
            "true error": _true_error(outcome["error_interval"]),
            "drift": _drifts(outcome["drift"]),
            "test error": _test_error(outcome),
            "updates": None if outcome["updates"] is None else f"{int(np.sum(outcome['updates'])):,}",
            "margin ceiling": _first(["none" if one is None else rounded_up(one, 4) for one in ceilings]),
            "bad lines": f"{outcome['bad_lines']:,}" if outcome["bad_lines"] else None,
            "speed": f"{outcome['examples_per_second']:,.0f} examples/s"
            + (f", {speed:.0f} MB/s" if speed is not None else ""),
            "time": f"{outcome['seconds']:.2f} s",
            "model": outcome["model"],
        }
    )
    report_bad_lines(outcome)


def _drifts(history: list[dict[str, Any]]) -> str | None:
    """Return the last alarm in words, and how many there were; None if there was none."""
    from maxcosine.drift import Drift

    if not history:
        return None
    count = "" if len(history) == 1 else f"{len(history)} alarms, the last: "
    return f"{count}{Drift(**history[-1])} (a heuristic)"


def _true_error(interval: Sequence[float] | None) -> str | None:
    """Say between which ends the true error lies, rounded outwards."""
    if interval is None:
        return None
    low, high = rounded_down(100 * interval[0], 3), rounded_up(100 * interval[1], 3)
    return f"{low}% to {high}% on average while learning (95 %, if examples come independently)"


def _test_error(outcome: dict[str, Any]) -> str | None:
    if "test_examples" not in outcome:
        return None
    if not outcome["test_examples"]:
        return "there is no example to test on"
    error, n_bad = outcome["test_error"], outcome["test_bad_lines"]
    return f"{error:.3%}" + (f", {n_bad:,} bad lines skipped" if n_bad else "")


def report_bad_lines(outcome: dict[str, Any]) -> None:
    """Print the messages of the first bad lines, and the number of further ones."""
    told = outcome["first_bad_lines"]
    for line in told:
        tell(f"skipped {line}")
    if outcome["bad_lines"] > len(told) > 0:
        tell(f"skipped {outcome['bad_lines'] - len(told):,} more")


def show_conversion(outcome: dict[str, Any]) -> None:
    """Print the outcome of a conversion."""
    from rich.filesize import decimal

    size = outcome["bytes_read"]
    _show_pairs(
        {
            "examples": f"{outcome['examples']:,}",
            "labels": f"{outcome['labels']:,}",
            "bad lines": f"{outcome['bad_lines']:,}" if outcome["bad_lines"] else None,
            "read": None if size is None else decimal(size),
            "written": decimal(outcome["bytes_written"]),
            "time": f"{outcome['seconds']:.2f} s",
            "cache": outcome["output"],
        }
    )
    report_bad_lines(outcome)


def show(results: Results) -> None:
    """Print the table of an experiment, and its summary."""
    from maxcosine.experiments.summary import summarise

    console().print(_mistakes_table(results))
    for paragraph in summarise(results):
        show_paragraph(paragraph)


def show_paragraph(text: str) -> None:
    """Print a text, wrapped to the width of the terminal, and an empty line."""
    console().print(visible(text), markup=False, highlight=False)
    console().print()


def _mistakes_table(results: Results) -> Table:
    """Return a table of labels by rules with the best in bold; rules by labels if there are many rules."""
    from rich.text import Text

    from maxcosine.experiments import statistics
    from maxcosine.experiments.rule_styles import title_of

    means, spreads = statistics.means(results), statistics.spreads(results)
    ranks, wins = statistics.mean_ranks(results), statistics.wins(results)
    grid = np.array([means[rule] for rule in results.rules])
    best = grid == grid.min(axis=0)
    title = (
        f"Test mistakes of {results.dataset['test']:,}, one label against the rest, one pass, "
        f"mean of {results.protocol['permutations']} orders"
    )

    def cell(text: str, is_best: bool) -> Text:
        return Text(f"{text}*" if is_best else f"{text} ", style="bold" if is_best else "")

    if len(results.rules) > MAX_RULE_COLUMNS:
        # A terminal of 80 columns has no room for stars; it shows the best in bold.
        end = -1 if console().is_terminal else None
        columns = ["rule", *(label[:4] for label in results.labels), "mean", "rank"]
        table = new_table(title, columns, no_wrap=True)
        table.padding = (0, 1, 0, 0)
        for k in np.argsort(grid.mean(axis=1), kind="stable"):
            rule = results.rules[k]
            cells = [cell(f"{value:.0f}", is_best)[:end] for value, is_best in zip(grid[k], best[k], strict=True)]
            short = title_of(rule).replace("averaged", "avg")
            table.add_row(plain(short), *cells, f"{grid[k].mean():.1f}", f"{ranks[rule]:.1f}")
        table.caption, table.caption_justify = plain(_mistake_bounds(results)), "left"  # no room for a column
        return table
    table = new_table(title, ["label", *map(title_of, results.rules)])
    for j, label in enumerate(results.labels):
        cells = [
            cell(f"{value:.1f} ± {spreads[rule][j]:.1f}", is_best)
            for rule, value, is_best in zip(results.rules, grid[:, j], best[:, j], strict=True)
        ]
        table.add_row(plain(label), *cells, end_section=j + 1 == len(results.labels))
    table.add_row("mean", *(f"{row.mean():.1f} " for row in grid))
    table.add_row("mean rank", *(f"{ranks[rule]:.2f} " for rule in results.rules))
    table.add_row("labels won", *(f"{wins[rule]:.3g} " for rule in results.rules))
    if results.gains is not None:
        table.add_row("mistake bound", *(f"{mistake_bound(results.gains[rule])} " for rule in results.rules))
    return table


def _mistake_bounds(results: Results) -> str:
    """Return each mistake bound with the rules that have it; an averaged rule has that of the rule itself."""
    from maxcosine.experiments.results import AVERAGED
    from maxcosine.experiments.rule_styles import title_of

    rules: dict[str, list[str]] = {}
    for rule, gain in (results.gains or {}).items():
        titles = rules.setdefault(mistake_bound(gain), [])
        titles += {title_of(rule.removeprefix(AVERAGED))} - {*titles}
    bounds = "; ".join(f"{bound}: {', '.join(titles)}" for bound, titles in sorted(rules.items()))
    return bounds and f"Mistake bound {bounds}"


def show_evaluation(found: dict[str, Any]) -> None:
    """Print how well a model predicts."""
    summary = [f"{found['examples']:,} examples"]
    if found["error"] is not None:
        summary.append(f"error {found['error']:.3%}")
    if found["auc"] is not None:
        summary.append(f"AUC {found['auc']:.4f}")
    if found["bad_lines"]:
        summary.append(f"{found['bad_lines']:,} bad lines skipped")
    console().print(", ".join(summary), style="bold", markup=False, highlight=False)
    n_known = len(found["precision"])
    matrix = _confusion(found)
    # A matrix that is cut at the margin would be useless.
    without_end = console().options.update(width=sys.maxsize)
    fits = console().measure(matrix, options=without_end).maximum <= console().width
    console().print(matrix if n_known <= MAX_CONFUSION_CLASSES and fits else _mistaken(found))


def _confusion(found: dict[str, Any]) -> Table:
    """Return the confusion matrix."""
    n_known = len(found["precision"])
    columns = ["label", *found["classes"][:n_known], "precision", "recall"]
    table = new_table("labels by predicted class", columns, no_wrap=True)
    for k, label in enumerate(found["classes"][: MAX_CONFUSION_CLASSES + 10]):
        table.add_row(plain(label), *(f"{n:,}" for n in found["confusion"][k][:n_known]), *_measures(found, k))
    return table


def _mistaken(found: dict[str, Any]) -> Table:
    """Return a table of labels, each with the class that was most often predicted by mistake."""
    columns = ["label", "examples", "precision", "recall", "most often mistaken for"]
    table = new_table("labels; the confusion matrix is in --json", columns, overflow="fold")
    table.columns[-1].justify = "left"
    for k, label in enumerate(found["classes"]):
        counts = np.array(found["confusion"][k])
        others = np.where(np.arange(len(counts)) == k, 0, counts)
        most = int(np.argmax(others))
        mistaken = f"{found['classes'][most]} ({others[most]:,})" if others[most] else ""
        table.add_row(plain(label), f"{counts.sum():,}", *_measures(found, k), plain(mistaken))
    return table


def _measures(found: dict[str, Any], k: int) -> list[str]:
    """Return the precision and recall of a label."""
    if k >= len(found["precision"]):
        return ["unknown", "unknown"]
    return ["-" if share is None else f"{share:.2%}" for share in (found["precision"][k], found["recall"][k])]


def show_model(found: dict[str, Any], certificate: Any) -> None:
    """Print the properties of a model."""
    features, classes = found["features"], found["classes"]
    parameters = ", ".join(f"{name} = {value:g}" for name, value in found["parameters"].items())
    rows: dict[str, str | None] = {
        "rule": found["rule"]
        + (f" ({parameters})" if parameters else "")
        + (", averaged" if found["averaged"] else ""),
        "classes": f"{len(classes)}: {_first(classes)}" + (f" ({found['multiclass']})" if len(classes) > 2 else ""),
        "features": f"{features['count']:,} {features['kind']}",
        "weights": found["weights"] + (", with an intercept" if found["intercept"] else ""),
    }
    for kind, names in (found["records"] or {}).items():
        rows[f"{kind} columns" if kind not in ("label", "weight") else kind] = ", ".join(names)
    trained = found["trained"] or {}
    rows["command"] = trained.get("command")
    rows["data"] = ", ".join(
        one["name"] + ("" if one["bytes"] is None else f" ({one['bytes']:,} bytes)") for one in trained.get("data", [])
    )
    if "examples" in trained:
        rows["examples"] = f"{trained['examples']:,} in {trained['passes']} pass(es)"
    if found["judged"]:
        share = found["mistakes"] / found["judged"]
        rows["progressive error"] = f"{share:.3%}: {found['mistakes']:,} of {found['judged']:,} predicted wrongly"
        rows["true error"] = _true_error(found["error_interval"])
        rows["drift"] = _drifts(found["drift"])
    _show_pairs(rows)
    typer.echo()
    for line in str(certificate).split("\n"):
        typer.echo(visible(line))
    for title, heaviest in list(found["heaviest"].items())[:MAX_CONFUSION_CLASSES]:
        if heaviest:
            typer.echo(f"\nheaviest features for {visible(title)}\n")
            heaviest = [(visible(name), weight) for name, weight in heaviest]
            width = max(len("feature"), *(len(name) for name, _ in heaviest))
            for name, weight in [("feature", "weight"), *((name, f"{w:+.4g}") for name, w in heaviest)]:
                typer.echo(f"  {name:{width}}  {weight:>10}")
