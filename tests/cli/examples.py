"""Small files of examples, and models of them."""

import json

import numpy as np

from tests.commands import run


def examples(n=300, seed=0, classes=2, prefix=""):
    """Examples of classes c0, c1, ..., which a plane separates: each has a feature of its class."""
    random = np.random.default_rng(seed)
    for _ in range(n):
        label = int(random.integers(classes))
        ids = np.unique(random.integers(0, 40, 6))
        values = [f"{prefix}{i}:{random.integers(1, 9) / 8:g}" for i in ids]
        yield f"c{label}", " ".join([*values, f"{prefix}{100 + label}:1"])


def svm(n=300, **options):
    """Lines of svmlight."""
    return "".join(f"{label} {features}\n" for label, features in examples(n, **options))


def vw(n=300, **options):
    """Lines of Vowpal Wabbit's format."""
    return "".join(f"{label} |w {features}\n" for label, features in examples(n, prefix="f", **options))


def labels(text):
    """The labels of lines."""
    return [line.split()[0] for line in text.splitlines()]


def succeed(folder, *arguments, **options):
    """Run a command that must succeed; return its standard output."""
    ran = run(folder, *arguments, **options)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def outcome(folder, *arguments, **options):
    """Run a command with --json; return what it prints."""
    return json.loads(succeed(folder, *arguments, "--json", **options))


def refuse(folder, *arguments, **options):
    """Run a command that must end with an error of one line; return the line."""
    ran = run(folder, *arguments, **options)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    return ran.stderr
