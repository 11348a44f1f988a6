"""Write results/onepass.md from results/onepass.json: ``python docs/generate_onepass.py``.

``make results-onepass DATA=DIR`` measures the figures before it calls this script.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from maxcosine import files
from maxcosine.experiments.rule_styles import join_words

HERE = Path(__file__).parent
DATA, PAGE = HERE / "results" / "onepass.json", HERE / "results" / "onepass.md"
OURS, PLAIN = "onepass", "avg_mcp"
HALF = 0.5
"""Added to both counts of mistakes before they are divided, because a batch learner may make none."""
DIGITS = 9
"""To which errors are rounded before they are compared, so that sums of folds in another order are equal."""
WIDTH = 120
Set = dict[str, Any]

INTRODUCTION = """# OnePassClassifier beside other learners

`OnePassClassifier` reads each example once and has nothing to tune. This page compares it with every rule of this
package, with the one-pass learners of scikit-learn, Vowpal Wabbit and River, and with batch learners that were tuned by
cross-validation. All one-pass learners have their defaults and read the same {n_orders} orders of the rows as they are.
`docs/generate_onepass.py` writes this page from `docs/results/onepass.json`, which has every figure.
[The last section](#how-it-was-measured) says how they were measured.
"""

NEEDS = """## What it needs, and what it does not

It does not need scaled or normalised features, a learning rate, a regularisation parameter, a choice of a rule, a
second pass, held-out examples for its probabilities, or the number of features, examples or classes in advance.

It needs more time and memory than a single rule. Its fit takes {slower:.0f} times as long as that of averaged `mcp` in
the geometric mean, from {least:.1f} times on {least_set} to {most:.0f} times on {most_set}. It needs examples in an
order that does not depend on the label: it mixes its heads, and fits its probabilities, by its errors so far. It has no
`coef_`, because its boundary is not a hyperplane in the features.
"""

PROTOCOL = """## How it was measured

**One-pass learners.** The orders are random permutations with the seeds {seeds}; tables show means over the orders.
{divided} come without test examples: a fifth of their rows, drawn once, is kept for the test. Rules and the learners
of scikit-learn learn more than two classes one against the rest, and so does Vowpal Wabbit (`--oaa`);
`OnePassClassifier` learns them jointly. For one label against the rest, it learns each label by itself; for the other
learners the scores of the ten-class models decide. SGD and Perceptron have `max_iter=1, tol=None, shuffle=False`.
Vowpal Wabbit has a table of weights that is large enough for every feature and class (`-b`); `--coin` has the logistic
loss. River is `StandardScaler | LogisticRegression`, on {river} only, with zeros as values.

**Batch learners.** {folds}-fold cross-validation on the training rows chooses among the views and values of C. The
views are the rows as they are, rows of length 1 (l2), tf-idf with logarithmic counts and length 1 for word counts, and
features of variance 1 (standardised; centred if the data are dense). C is divided by the mean squared length of a row
of the view. Before that, it is one of {svc_strengths} for LinearSVC and of {lr_strengths} for LogisticRegression. The
choice is limited to {svc_choice} iterations of LinearSVC and {lr_choice} of LogisticRegression, the final fit to
{svc_final} and {lr_final}. LogisticRegression has the tolerance {tolerance:g}, so that it does not end early on
text. {choice_rows}
Errors belong to the parameters with the smallest cross-validated error, and the log loss to those with
the smallest cross-validated log loss. "The tuned batch learner" is the one of the two with the smaller cross-validated
error (LinearSVC, if they are equal). For one label against the rest, the batch learners keep the
parameters that were chosen for ten classes.

**Numbers.** The log loss is the mean of -log(probability of the true class). The expected calibration error compares
the probability of the predicted class with the share of right predictions, in {bins} bins of equal width. Seconds are
those that the processor spent on the fit, in one thread; the least of the orders. The learners took turns. Vowpal
Wabbit's seconds include those of another thread, which reads text. Other work ran on the machine and disturbed all
learners, so small differences in seconds mean little.

{sizes}

    {command}

Versions: {versions}; {processor}.
"""


def page(results: dict[str, Any]) -> str:
    """Return the page."""
    parts = [INTRODUCTION.strip().format(n_orders=len(results["orders"])), _summary(results), _losses(results)]
    parts += [_needs(results), _errors(results), _log_losses(results), _seconds(results), _protocol(results)]
    return "\n\n".join(parts).strip() + "\n"


def error(one: Set, learner: str) -> float:
    """Return the mean test error of a one-pass learner, over labels and orders."""
    return float(np.mean(one["runs"][learner]["mistakes"])) / one["test"]


def batch_error(one: Set, learner: str) -> float:
    """Return the test error of a batch learner."""
    return float(np.mean(one["batch"][learner]["mistakes"])) / one["test"]


def tuned(one: Set) -> str:
    """Return the batch learner with the smaller cross-validated error; the first, if they are equal."""
    return min(one["batch"], key=lambda name: round(one["batch"][name]["cv_error"], DIGITS))


def everywhere(results: dict[str, Any]) -> list[str]:
    """Return the one-pass learners that were measured on every set."""
    names = [one["name"] for one in results["learners"]]
    return [name for name in names if all(name in one["runs"] for one in results["sets"])]


def mean_ranks(results: dict[str, Any]) -> dict[str, float]:
    """Return the mean rank by error of the one-pass learners that were measured on every set."""
    names = everywhere(results)
    ranks = [rankdata([error(one, name) for name in names]) for one in results["sets"]]
    return dict(zip(names, np.mean(ranks, axis=0).tolist(), strict=True))


def ratio(one: Set, learner: str) -> float:
    """Return the mistakes of a one-pass learner divided by those of the tuned batch learner."""
    return (error(one, learner) * one["test"] + HALF) / (batch_error(one, tuned(one)) * one["test"] + HALF)


def mean_ratio(results: dict[str, Any], learner: str) -> float:
    """Return the geometric mean of the ratios over all sets."""
    return float(np.exp(np.mean([np.log(ratio(one, learner)) for one in results["sets"]])))


def _titles(results: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["title"] for one in results["learners"]}


def _summary(results: dict[str, Any]) -> str:
    titles, ranks = _titles(results), mean_ranks(results)
    ordered = sorted(ranks, key=lambda name: ranks[name])
    rows = []
    for name in ordered:
        best = sum(error(one, name) == min(error(one, other) for other in ranks) for one in results["sets"])
        rows.append([titles[name], f"{ranks[name]:.1f}", f"{mean_ratio(results, name):.2f}", str(best)])
    place = ordered.index(OURS)
    other = ordered[1] if place == 0 else ordered[0]
    words = (
        f"`OnePassClassifier` has the mean rank {ranks[OURS]:.1f} among {len(ranks)} one-pass learners on "
        f"{len(results['sets'])} sets; {'the next' if place == 0 else 'the best'} is {titles[other]} with "
        f"{ranks[other]:.1f}. Its error is {mean_ratio(results, OURS):.2f} times that of the tuned batch learner in "
        "the geometric mean. Half a mistake is added to both counts, because a learner may make none."
    )
    header = ["one-pass learner", "mean rank", "ratio to the tuned batch learner", "sets on which none is better"]
    return f"## In short\n\n{words}\n\n{_markdown(header, rows)}"


def better(one: Set) -> list[tuple[str, float]]:
    """Return the one-pass learners with a smaller error than ours on a set, and their errors; the best first."""
    found = [(name, error(one, name)) for name in one["runs"] if error(one, name) < error(one, OURS)]
    return sorted(found, key=lambda pair: pair[1])


def _losses(results: dict[str, Any]) -> str:
    """Say on which sets it loses, to which learners and by how much."""
    titles = _titles(results)
    lines, wins = [], []
    for one in results["sets"]:
        ours = error(one, OURS)
        winners = [(titles[name], found) for name, found in better(one)]
        batches = [(f"tuned {name}", batch_error(one, name)) for name in one["batch"]]
        winners += [(title, found) for title, found in batches if found < ours]
        losses = [f"{title} by {(ours - found) * 100:.2f} points ({_percent(found)})" for title, found in winners]
        orders = np.mean(one["runs"][OURS]["mistakes"], axis=0) / one["test"]
        span = f"{_percent(ours)} ({_percent(orders.min())} to {_percent(orders.max())})"
        if losses:
            lines.append(f"- {one['title']}, {span}: it loses to {'; '.join(losses)}.")
        else:
            wins.append(f"{one['title']} ({_percent(ours)})")
    parts = ["## Where it loses", "Test errors; in parentheses, the least and the greatest of the orders."]
    if lines:
        parts.append("\n".join(lines))
    if wins:
        parts.append(f"It loses to none, batch learners included, on {join_words(wins)}.")
    parts += [_lost_log_losses(results), _calibration(results)]
    return "\n\n".join(parts)


def _lost_log_losses(results: dict[str, Any]) -> str:
    titles, lost, compared = _titles(results), [], []
    for one in results["sets"]:
        if "log_loss" not in one["runs"][OURS]:
            continue
        ours, of_batch = log_loss(one, OURS), one["batch"]["LogisticRegression"]["log_loss"]
        compared.append(f"{one['title']} {ours / of_batch:.2f}")
        names = [name for name, run in one["runs"].items() if "log_loss" in run and log_loss(one, name) < ours]
        if names:
            lost.append(f"{one['title']} ({join_words([titles[name] for name in names])})")
    start = "Its log loss, divided by that of the tuned LogisticRegression: "
    one_pass = (
        f"larger than that of another one-pass learner on {join_words(lost)}"
        if lost
        else ("the smallest of all one-pass learners on every set")
    )
    return f"{start}{', '.join(compared)}. It is {one_pass}."


def _calibration(results: dict[str, Any]) -> str:
    found = {
        one["title"]: float(np.mean(one["runs"][OURS]["calibration_error"]))
        for one in results["sets"]
        if "calibration_error" in one["runs"][OURS]
    }
    listed = ", ".join(f"{title} {_percent(value)}" for title, value in found.items())
    small = "On small test sets chance alone makes this number large."
    return f"Its expected calibration error: {listed}. {small}"


def log_loss(one: Set, learner: str) -> float:
    """Return the mean log loss of a one-pass learner over the orders."""
    return float(np.mean(one["runs"][learner]["log_loss"]))


def seconds(one: Set, learner: str) -> float:
    """Return the seconds of the fastest fit."""
    return float(min(one["runs"][learner]["seconds"]))


def _timed(results: dict[str, Any]) -> list[Set]:
    return [one for one in results["sets"] if "seconds" in one["runs"][OURS]]


def _needs(results: dict[str, Any]) -> str:
    slower = {one["title"]: seconds(one, OURS) / seconds(one, PLAIN) for one in _timed(results)}
    least, most = min(slower, key=lambda title: slower[title]), max(slower, key=lambda title: slower[title])
    text = NEEDS.strip().format(
        slower=np.exp(np.mean(np.log(list(slower.values())))),
        least=slower[least],
        least_set=least,
        most=slower[most],
        most_set=most,
    )
    return _wrap(text)


def _errors(results: dict[str, Any]) -> str:
    sets = results["sets"]
    rows = []
    for name, title in _titles(results).items():
        cells = []
        for one in sets:
            if name not in one["runs"]:
                cells.append("")
                continue
            best = error(one, name) == min(error(one, other) for other in one["runs"])
            shown = f"{error(one, name) * 100:.2f}"
            cells.append(f"**{shown}**" if best else shown)
        rows.append([title, *cells])
    for name in results["batch"]["learners"]:
        rows.append([f"tuned {name}", *(f"{batch_error(one, name) * 100:.2f}" for one in sets)])
    about = "In percent; the smallest of the one-pass learners is bold."
    table = _markdown(["learner", *(one["title"] for one in sets)], rows)
    return f"## Test error\n\n{about}\n\n{table}\n\n{_choices(results)}"


def _choices(results: dict[str, Any]) -> str:
    """Say which view and C the tuned batch learners have chosen."""
    lines = []
    for one in results["sets"]:
        chosen = [
            f"{name} {found['chosen']} and {found['strength']:g}"
            for name, found in one["batch"].items()
            if "chosen" in found
        ]
        if chosen:
            lines.append(f"- {one['title']}: {', '.join(chosen)}; the tuned batch learner is {tuned(one)}")
    start = "Cross-validation has chosen these views, and these values of C times the mean squared length of a row:"
    return f"{start}\n\n" + "\n".join(lines)


def _log_losses(results: dict[str, Any]) -> str:
    sets = _timed(results)
    rows = []
    for name, title in _titles(results).items():
        found = [one["runs"].get(name, {}) for one in sets]
        if any("log_loss" in run for run in found):
            cells = [
                _loss(log_loss(one, name)) if "log_loss" in run else "" for one, run in zip(sets, found, strict=True)
            ]
            rows.append([title, *cells])
    rows.append(["tuned LogisticRegression", *(_loss(one["batch"]["LogisticRegression"]["log_loss"]) for one in sets)])
    about = "Of the learners that give probabilities."
    return f"## Log loss\n\n{about}\n\n{_markdown(['learner', *(one['title'] for one in sets)], rows)}"


def _seconds(results: dict[str, Any]) -> str:
    sets = _timed(results)
    rows = []
    for name, title in _titles(results).items():
        rows.append([title, *(_time(seconds(one, name)) if name in one["runs"] else "" for one in sets)])
    for name in results["batch"]["learners"]:
        rows.append([f"tuned {name}", *(_time(one["batch"][name]["seconds"]) for one in sets)])
    about = "Of one fit; those of the batch learners do not include the choice of their parameters."
    return f"## Seconds\n\n{about}\n\n{_markdown(['learner', *(one['title'] for one in sets)], rows)}"


def _loss(found: float) -> str:
    return f"{found:.4f}" if found >= 0.001 else f"{found:.1e}"


def _time(found: float) -> str:
    return f"{found:.3f}" if found < 1 else f"{found:.1f}" if found < 100 else f"{found:.0f}"


def _protocol(results: dict[str, Any]) -> str:
    sets, batch = results["sets"], results["batch"]
    limited = [f"{one['title']} {one['choice_rows']:,}" for one in _timed(results) if one["choice_rows"]]
    sizes = [
        [one["title"], *(f"{one[name]:,}" for name in ("train", "test", "features", "classes")), one["content"]]
        for one in sets
    ]
    text = PROTOCOL.strip().format(
        seeds=join_words([str(seed) for seed in results["orders"]]),
        divided=join_words([one["title"] for one in sets if one["divided"]]),
        river=join_words([one["title"] for one in sets if "river" in one["runs"]]),
        folds=batch["folds"],
        svc_strengths=join_words([f"{one:g}" for one in batch["strengths"]["LinearSVC"]]),
        lr_strengths=join_words([f"{one:g}" for one in batch["strengths"]["LogisticRegression"]]),
        svc_choice=batch["choice_iterations"]["LinearSVC"],
        lr_choice=batch["choice_iterations"]["LogisticRegression"],
        svc_final=batch["final_iterations"]["LinearSVC"],
        lr_final=batch["final_iterations"]["LogisticRegression"],
        choice_rows=f"A random part of the rows decides on some sets: {join_words(limited)}." if limited else "",
        tolerance=batch["tolerance"],
        bins=results["bins"],
        sizes=_markdown(
            ["data", "training examples", "test examples", "features", "classes", "content"], sizes, align="---"
        ),
        command=results["command"],
        versions=", ".join(f"{name} {number}" for name, number in results["versions"].items()),
        processor=results["processor"],
    )
    return _wrap(text)


def _wrap(text: str) -> str:
    """Wrap the paragraphs anew after numbers and names were filled in; headings, tables and commands stay."""
    paragraphs = [
        part if part.startswith(("#", "|", " ")) else textwrap.fill(part, WIDTH, break_on_hyphens=False)
        for part in text.split("\n\n")
    ]
    return "\n\n".join(paragraphs)


def _percent(share: float) -> str:
    return f"{share * 100:.2f} %"


def _markdown(header: list[str], rows: list[list[str]], align: str = "---:") -> str:
    lines = [header, ["---", *[align] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    files.write(PAGE, page(json.loads(DATA.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
