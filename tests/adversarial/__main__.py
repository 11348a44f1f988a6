"""Check many seeds: ``python -m tests.adversarial --seeds 0..5000``. The exit code is 1 if a claim is false."""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from tests.adversarial.shards import Shard


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description=__doc__)
    parser.add_argument("--seeds", default="0..1000", help="from..to, the last one not included")
    parser.add_argument("--shown", type=int, default=3, help="how many false claims of each kind are shown in full")
    options = parser.parse_args()
    first, stop = map(int, options.seeds.split(".."))
    warnings.simplefilter("ignore")  # about labels that come in order
    began = time.perf_counter()
    shard = Shard(options.shown).check(range(first, stop))
    seconds = time.perf_counter() - began
    print(f"{shard}\n{seconds:.0f} s, {1000 * seconds / max(shard.models, 1):.1f} ms a model\nchecks:")
    for check, count in sorted(shard.done.items()):
        print(f"  {check}: {count:,}")
    for title, counts in (("rule", shard.by_rule), ("kind of rows", shard.by_kind)):
        for (check, name), count in sorted(counts.items()):
            print(f"false by {title}: {check}, {name}: {count:,}")
    return 1 if shard.false else 0


if __name__ == "__main__":
    sys.exit(main())
