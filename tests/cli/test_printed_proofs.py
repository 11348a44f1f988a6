"""Commands print ceilings rounded up and bounds rounded down."""

import re
from decimal import Decimal

import pytest

from tests.cli.examples import outcome, svm
from tests.commands import run
from tests.experiments.small import table

RULES = "mcp,pa1,perceptron,alma,romma,norma"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proofs")
    for name, classes in (("two", 2), ("ten", 10)):
        (folder / f"{name}.svm").write_text(svm(300, classes=classes))
    return folder


@pytest.mark.parametrize("data", ["two.svm", "ten.svm"])
def test_train_and_inspect(folder, data):
    command = ["train", data, "--rule", "mcp", "--model", "a.model"]
    exact = outcome(folder, *command)["margin_ceiling"]
    text = run(folder, *command).stdout
    printed = [Decimal(word) for word in re.search(r"^margin ceiling +(.+)$", text, re.MULTILINE)[1].split(", ")]
    exact = exact if isinstance(exact, list) else [exact]
    assert len(printed) == len(exact)
    assert all(up >= Decimal(value) for up, value in zip(printed, exact, strict=True))
    shown = run(folder, "inspect", "a.model").stdout
    if data == "two.svm":
        assert Decimal(re.search(r"has a margin above (\S+)$", shown, re.MULTILINE)[1]) >= Decimal(exact[0])
    else:
        rows = re.findall(r"^ +c\d +(\S+) ", shown, re.MULTILINE)
        assert all(Decimal(up) >= Decimal(value) for up, value in zip(rows, exact, strict=True))


@pytest.mark.parametrize("data", ["two.svm", "ten.svm"])
def test_compare_and_its_report(folder, data):
    found = outcome(folder, "compare", data, "--rules", RULES, "--report", "r.html")["rules"]
    ceilings = [min(Decimal(one) for one in row["margin_ceilings"]) for row in found]
    bounds = [max(Decimal(one) for one in row["bounds"]) for row in found]
    _, *rows = table((folder / "r.html").read_text(encoding="utf-8"), "The rules")
    assert all(Decimal(row[3]) <= bound for row, bound in zip(rows, bounds, strict=True))
    assert all(Decimal(row[4]) >= ceiling for row, ceiling in zip(rows, ceilings, strict=True))
    text = run(folder, "compare", data, "--rules", RULES).stdout
    printed = re.findall(r"% +[\d,]+ +(\S+) +(?:\(R/γ\)²|none proven) +\S+ *$", text, re.MULTILINE)
    assert all(Decimal(up) >= ceiling for up, ceiling in zip(printed, ceilings, strict=True))
