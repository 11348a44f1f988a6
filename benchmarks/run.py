"""Speed beside scikit-learn and River: ``make bench``, or ``python benchmarks/run.py --data DIR``.

Ratios, not seconds: both sides run here and now, interleaved, the best of several. DIR holds
mnist/*.gz (the four idx files), sparse/20news_train.svm.gz (svmlight) and sparse/20news.vocab.gz (a
word a line); what it lacks is left out and said so. `make bench DATA=DIR` passes it on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import dicts
import growth
import memory
import one_pass
import protocol
import startup
from timing import environment


def verdict(reached: bool) -> str:
    return "yes" if reached else "NO"


def show(results: dict[str, Any]) -> None:
    versions = results["environment"]
    print(f"\nmaxcosine {versions['maxcosine']} beside scikit-learn {versions['scikit-learn']}")
    print(f"{versions['processor']}, Python {versions['python']}, numba {versions['numba']}; one thread each")
    print(f"peer: {one_pass.PEER}\nours: {one_pass.OURS}, the whole fit\n")
    print(f"{'one pass':42}{'ours':>10}{'peer':>10}{'ratio':>8}{'least':>7}{'aim':>6}  reached")
    for row in results["one_pass"]:
        if "missing" in row:
            print(f"{row['data']:42}not measured: {row['missing']} is not in --data")
            continue
        ours, peer, reached = row["ours_s"] * 1e3, row["peer_s"] * 1e3, row["ratio"] >= row["least"]
        print(
            f"{row['data']:42}{ours:7.1f} ms{peer:7.1f} ms{row['ratio']:8.2f}"
            f"{row['least']:7.1f}{row['aim']:6.1f}  {verdict(reached)}"
        )
    start = results["startup"]
    print(f"\n{'start':42}{'seconds':>10}{'at most':>10}  reached")
    for name, what in (
        ("first_fit", "the first fit ever, compiling"),
        ("later_process", "what a later process pays for us"),
        ("own_rule_compile", "a rule of one's own, compiled"),
    ):
        seconds, most = start[f"{name}_s"], start[f"{name}_most_s"]
        print(f"{what:42}{seconds:10.2f}{most:10.2f}  {verdict(seconds <= most)}")
    print(f"a rule of one's own takes {start['own_rule_slower']:.2f} times the built-in rule's time")
    show_protocol(results["protocol"])
    show_dicts(results["dicts"], versions["river"])
    show_memory(results["memory"])
    grown = results["growth"]
    print("\nns a non-zero by features: ", end="")
    print(", ".join(f"{k} {v:.1f}" for k, v in grown["ns_a_nonzero"].items()))
    print(
        f"from 2^16 to 2^26: {grown['factor']:.2f} times (at most {grown['most']:.0f}): "
        f"{verdict(grown['factor'] <= grown['most'])}"
    )


def show_protocol(found: dict[str, Any]) -> None:
    print("\nthe paper's protocol on MNIST: 3 rules, 10 labels, 20 orders, tests; from disk to results file")
    if "missing" in found:
        print(f"not measured: {found['missing']} cannot be had")
        return
    print(
        f"ours {found['ours_s']:.2f} s on {found['processors']} processors, at most {found['most_s']:.0f} "
        f"(aim {found['aim_s']:.0f}): {verdict(found['ours_s'] <= found['most_s'])}; "
        f"the whole command with its report {found['command_s']:.2f} s"
    )
    print(
        f"scikit-learn's SGDClassifier, PA alone: {found['peer_s']:.2f} s, {found['ratio']:.2f} times as "
        f"long, at least {found['least']:.0f} (aim {found['aim']:.0f}): "
        f"{verdict(found['ratio'] >= found['least'])}"
    )


def show_dicts(found: dict[str, Any], river: str) -> None:
    row = found["learn_one"]
    print(f"\none by one, beside River {river}\npeer: {row['peer']}\nours: {row['ours']}\n")
    print(f"{'dicts':42}{'ours':>10}{'peer':>10}{'ratio':>8}{'least':>7}{'aim':>6}  reached")
    if "missing" in row:
        print(f"{row['data']:42}not measured: {row['missing']} is missing")
    else:
        print(
            f"{row['data']:42}{row['ours_us']:7.1f} us{row['peer_us']:7.1f} us{row['ratio']:8.2f}"
            f"{row['least']:7.1f}{row['aim']:6.1f}  {verdict(row['ratio'] >= row['least'])}"
        )
    print(f"\n{'exact index beside the pass':42}{'index':>10}{'pass':>10}{'ratio':>8}{'at most':>9}  reached")
    for row in found["index"]:
        if "missing" in row:
            print(f"{row['data']:42}not measured: {row['missing']} is not in --data")
            continue
        goal = "" if row["most"] is None else f"{row['most']:9.1f}  {verdict(row['ratio'] <= row['most'])}"
        print(f"{row['data']:42}{row['index_ns']:7.1f} ns{row['pass_ns']:7.1f} ns{row['ratio']:8.2f}{goal}")


def show_memory(found: list[dict[str, Any]]) -> None:
    print(f"\n{memory.FEATURES:,} features, {memory.CLASSES} classes, float32, the process while learning:")
    for row in found:
        print(
            f"  features as {row['features']}: peak {row['peak_bytes'] / 1e6:,.0f} MB "
            f"(before: {row['start_bytes'] / 1e6:,.0f}; weights {row['weights_bytes'] / 1e6:,.0f}, "
            f"index {row['index_bytes'] / 1e6:,.0f}), at most {row['most_bytes'] / 1e6:,.0f}: "
            f"{verdict(row['peak_bytes'] <= row['most_bytes'])}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--repeats", type=int, default=9, help="runs of each side (default: 9)")
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results.json")
    options = parser.parse_args()
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such folder")
    # One thread each: neither side may borrow cores through a library.
    os.environ["OMP_NUM_THREADS"] = "1"

    def step(title: str) -> None:
        print(f"... {title}", file=sys.stderr)

    versions = {**environment(), "river": dicts.river_version()}
    results: dict[str, Any] = {"environment": versions, "command": " ".join(sys.argv)}
    step("one pass beside scikit-learn")
    results["one_pass"] = one_pass.measure(options.data, options.repeats)
    step("first fit, later processes, a rule of one's own")
    results["startup"] = startup.measure()
    step("the paper's protocol on MNIST, beside a third of it by scikit-learn")
    results["protocol"] = protocol.measure(options.data, min(options.repeats, 3))
    step("dicts beside River, and the exact index")
    results["dicts"] = dicts.measure(options.data, options.repeats)
    step("memory of a large model")
    results["memory"] = memory.measure()
    step("growth with the number of features")
    results["growth"] = growth.measure(min(options.repeats, 5))
    show(results)
    temporary = options.json.with_suffix(".tmp")
    temporary.write_text(json.dumps(results, indent=2) + "\n")
    temporary.replace(options.json)
    print(f"\nwritten to {options.json}")


if __name__ == "__main__":
    main()
