"""What every rule learns from one small stream, as hashes: a program to run compiled and as plain Python."""

import hashlib
import itertools
import json

from maxcosine import RULES
from tests.contract.streams import bits, csr, stream, taught

STORAGES = {"dense": lambda X: X, "csr": csr}


def fingerprints():
    found = {}
    for name, dtype, n_classes, storage, average in itertools.product(
        RULES, ("float32", "float64"), (2, 5), STORAGES, (False, True)
    ):
        X, codes = stream(40, 7, n_classes=n_classes, dtype=dtype, noise=0.3)
        options = {"n_classes": n_classes, "average": average, "fit_intercept": True}
        learnt = bits(taught(name, STORAGES[storage](X), codes, **options))
        found[f"{name} {dtype} {n_classes} {storage} {average}"] = hashlib.sha256(learnt).hexdigest()
    return found


if __name__ == "__main__":
    print(json.dumps(fingerprints()))
