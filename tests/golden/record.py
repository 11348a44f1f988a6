"""Write the golden record: ``python -m tests.golden.record``.

Record again only to change what the engine learns, and say in the commit why a bit had to change.
"""

import numpy as np

from tests.golden.cases import RULES, STORAGES, fixture, learn_all


def record(storage: str) -> None:
    """Write what every rule learns to one file: arrays ``setting/tensor``, of which item k is of rule k."""
    arrays: dict[str, list[np.ndarray]] = {}
    for rule in RULES:
        for setting, learnt in learn_all(storage, rule):
            for name, array in learnt.items():
                arrays.setdefault(f"{setting.name}/{name}", []).append(array)
    stacked = {name: np.stack(of_rules) for name, of_rules in arrays.items()}
    np.savez_compressed(fixture(storage), **stacked)
    print(f"{fixture(storage).name}: {len(stacked)} arrays, {fixture(storage).stat().st_size:,} bytes")


if __name__ == "__main__":
    for storage in STORAGES:
        record(storage)
