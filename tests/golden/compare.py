"""Compare every model that is learnt now with the golden record: ``python -m tests.golden.compare``."""

import sys
from collections.abc import Iterator
from functools import cache

import numpy as np

from tests.golden.cases import RULES, STORAGES, fixture, learn_all


@cache
def recorded(storage: str) -> dict[str, np.ndarray]:
    """The arrays ``setting/tensor`` of a storage; item k of each is of rule k."""
    with np.load(fixture(storage)) as arrays:
        return dict(arrays)


def differences(storage: str, rule: str) -> Iterator[str]:
    """Say which arrays are not the same to the bit: setting, name and values."""
    expected = {name: arrays[RULES.index(rule)] for name, arrays in recorded(storage).items()}
    found = {
        f"{setting.name}/{name}": array
        for setting, learnt in learn_all(storage, rule)
        for name, array in learnt.items()
    }
    for name in sorted(expected.keys() | found.keys()):
        if name not in expected or name not in found:
            yield f"{storage} {rule} {name}: only {'learnt' if name in found else 'recorded'}"
        elif not _same_bits(found[name], expected[name]):
            yield f"{storage} {rule} {name}: learnt {found[name]!r}, recorded {expected[name]!r}"


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


if __name__ == "__main__":
    wrong = [line for storage in STORAGES for rule in RULES for line in differences(storage, rule)]
    print("\n".join(wrong))
    sys.exit(bool(wrong))
