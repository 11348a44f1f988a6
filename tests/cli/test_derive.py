"""`maxcosine derive`: from an expression on the command line to a rule that trains."""

import re
import sys
from fractions import Fraction
from html import unescape

import pytest

from tests.cli.examples import outcome, refuse, succeed, svm
from tests.commands import run

CMCP = "(ell + x)/sqrt(1 + sq_x*x**2)"
LEMMA_1 = "(ell + x)/sqrt(1 + sq_x*x**2 + 2*g*x)"
MCP = [CMCP, "--when", "g <= 1/(2*ell)", "--next-bound", "sqrt(ell**2 + (1 - 2*ell*max(0, g))/sq_x)"]
PROVEN = {
    "cmcp": [CMCP, "--when", "g <= 0", "--account", "paper"],
    "naromma": [LEMMA_1],
    "mcp_exact": [CMCP, "--when", "g <= 1/(2*ell)"],
    "mcp": MCP,
    "damped": ["--curve", "1/(1 + a*abs(v))", "--theta", "0.7", "--param", "a=1:1:2"],
    "soft": ["--curve", "1", "--margins", "1 - v", "--theta", "1"],
    "step": ["--step", "1/(ell*sq_x)", "--when", "g <= 0"],
    "smaller": ["(ell + x)/sqrt(1 + sq_x*x**2 + 2*min(0, g)*x)", "--when", "g <= 0"],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.svm").write_text(svm(300))
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def claims(found):
    return {one["name"]: one for one in found["claims"]}


@pytest.mark.parametrize("arguments", PROVEN.values(), ids=PROVEN)
def test_the_papers_rules_and_others_are_proven_from_the_command_line(tmp_path, arguments):
    found = outcome(tmp_path, "derive", *arguments)
    assert found["mistake_bound"] == {"m": "1", "failed": None, "text": "mistakes <= (R / gamma)^2"}
    needed = [claims(found)[name]["verdict"] for name in ("forward", "moves", "sound", "rises", "gain")]
    assert needed == ["proved"] * 5
    assert names(tmp_path) == []


def test_the_algorithm_and_its_proofs_are_printed_in_80_columns(tmp_path):
    printed = succeed(tmp_path, "derive", LEMMA_1, "--name", "mine")
    assert printed.startswith("mine\n")
    assert re.search(r"III +if g < ell\*sq_x and g < 1/ell:\n +x = \(1 - ell\*g\)/\(ell\*sq_x - g\)\n", printed)
    assert re.search(r"ell never falls +proved \(cells\)\n", printed)
    assert max(map(len, printed.splitlines())) < 80


def test_json_has_every_claim_with_its_verdict(tmp_path):
    found = outcome(tmp_path, "derive", "(ell + x)/sqrt(1 + sq_x*x**2/2)", "--when", "g <= 0", "--account", "paper")
    assert found["mistake_bound"]["failed"] == "sound"
    assert found["cases"] == [
        {"type": "I", "if": ["g <= 0"], "step": "2/(ell*sq_x)", "next_squared_bound": "ell**2 + 2/sq_x"}
    ]
    assert len(found["claims"]) == 8
    sound = claims(found)["sound"]
    assert sound["verdict"] == "false"
    u, c = (Fraction(sound["counterexample"][name]) for name in "uc")
    z = 2 / u
    assert u**2 + 2 > (u + z) ** 2 / (1 + z**2 + 2 * c * z)  # the bound promises more than Lemma 1 gives


def test_a_bound_without_a_closed_form_is_maximised_numerically(folder):
    found = outcome(folder, "derive", "(ell + x)/(1 + sq_x*x**2)", "--when", "g <= 0", "--save", "rule.py")
    assert found["cases"][0]["step"] == "numeric"
    assert claims(found)["rises"]["verdict"] == "tested"
    assert found["mistake_bound"]["m"] is None
    assert outcome(folder, "train", "a.svm", "--model", "m", "--rule", "rule.py:derived")["progressive_error"] < 0.2


def test_the_saved_rule_learns_what_the_built_in_rule_learns(folder):
    ran = run(folder, "derive", *MCP, "--name", "mine", "--save", "rule.py")
    assert ran.returncode == 0
    assert "maxcosine train data.svm --rule rule.py:mine --model my.model" in ran.stderr
    own = outcome(folder, "train", "a.svm", "--model", "own", "--rule", "rule.py:mine")
    builtin = outcome(folder, "train", "a.svm", "--model", "builtin", "--rule", "mcp")
    for name in ("progressive_error", "updates"):
        assert own[name] == builtin[name]
    predicted = succeed(folder, "predict", "own", "a.svm", "--rule", "rule.py:mine")
    assert predicted == succeed(folder, "predict", "builtin", "a.svm")
    assert "sympy" not in (folder / "rule.py").read_text().lower()


def test_parameters_of_the_saved_rule_can_be_set(folder):
    succeed(folder, "derive", *PROVEN["damped"], "--save", "rule.py")
    options = ["--model", "m", "--rule", "rule.py:derived"]
    ceilings = [
        outcome(folder, "train", "a.svm", *options, *more)["margin_ceiling"] for more in ([], ["--param", "a=2"])
    ]
    assert ceilings[0] != ceilings[1]
    assert "choose it in [1, 2]" in refuse(folder, "train", "a.svm", *options, "--param", "a=3")


def test_trial_on_digits_compares_in_pairs(tmp_path):
    printed = succeed(tmp_path, "derive", LEMMA_1, "--try", "digits", "--permutations", "1")
    assert "exactly as many as NAROMMA" in " ".join(printed.split())
    assert re.search(r"label +derived +MCP +MCP-exact +NAROMMA +PA *\n", printed)
    found = outcome(tmp_path, "derive", LEMMA_1, "--try", "digits", "--permutations", "1")["trial"]
    assert found["mean_test_mistakes"]["derived"] == found["mean_test_mistakes"]["naromma"]
    assert [one["other"] for one in found["differences"]] == ["mcp", "mcp_exact", "naromma", "pa"]
    assert names(tmp_path) == []


def test_trial_on_a_file_compares_as_the_command_compare_does(folder):
    rules = outcome(folder, "derive", LEMMA_1, "--try", "a.svm")["trial"]["rules"]
    errors = {one["rule"]: one["progressive_error"] for one in rules}
    compared = outcome(folder, "compare", "a.svm", "--rules", "mcp,mcp_exact,naromma,pa")["rules"]
    assert errors == {"derived": errors["naromma"], **{one["rule"]: one["progressive_error"] for one in compared}}
    assert "progressive" in succeed(folder, "derive", LEMMA_1, "--try", "a.svm")


def test_report_is_one_file_that_makes_no_requests(folder):
    ran = run(folder, "derive", LEMMA_1, "--name", "mine", "--try", "a.svm", "--report", "mine.html")
    assert ran.returncode == 0
    assert "report   mine.html" in ran.stderr
    html = unescape((folder / "mine.html").read_text())
    assert "default-src 'none'" in html
    page = html[: html.index('<script type="application/json"')]  # the script of the figures follows
    assert not re.findall(r"<(?:link|script|img)[^>]+(?:src|href)=[\"'](?!data:)", page)
    assert page.count("<math") >= 8
    assert "at most (R/γ)² mistakes" in page
    for part in ("ell", "sq_x", "norm(a)"):  # formulas have symbols
        assert not re.search(rf"<td>[^<]*\b{re.escape(part)}\b", page)
    assert "false at c = 1/2, u = 1/3" in page
    assert 'id="chart-band"' in page
    assert 'id="tables"' in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of BOUND, --step and --curve"),
        (["(ell + x)/sqrt(1 + sq_x*x**2"], "BOUND '(ell + x)/sqrt(1 + sq_x*x**2': column 15"),
        (["(ell + y)/sqrt(1 + sq_x*x**2)"], "column 8: unknown name 'y'; known names: ell, g, norm_w, sq_x, x"),
        (["__import__('os').system('touch owned')"], "column"),
        ([CMCP, "--when", "g == 0"], "--when 'g == 0': column"),
        (["(ell + x)/sqrt(1 + sq_x*x)"], "adds or compares unlike things"),
        (["(ell + x)/sqrt(1 - sq_x*x**2)"], "the radicand of the bound is not positive everywhere"),
        ([CMCP, "--name", "not a name"], "name='not a name' is not a Python name that a rule can have"),
        ([CMCP, "--name", "class"], "name='class' is not a Python name that a rule can have"),
        ([CMCP, "--name", "sqrt"], "name='sqrt' is not a Python name that a rule can have"),
        ([CMCP, "--param", "sqrt=1"], "'sqrt' cannot name a parameter"),
        ([CMCP, "--param", "a=1"], "no expression contains a"),
        ([CMCP, "--try", "missing.svm"], "missing.svm: there is no such file"),
        ([CMCP, "--try", "digits", "--name", "mcp"], "--try compares the rule with mcp, too; give it another --name"),
        ([CMCP, "--data", "."], "--data goes with --try mnist and --try fashion only"),
        ([CMCP, "--report", "rule.py"], "--report rule.py is --save, too"),
    ],
)
def test_mistakes_of_the_user_are_one_line_and_nothing_is_written(tmp_path, arguments, message):
    assert message in refuse(tmp_path, "derive", *arguments, "--save", "rule.py")
    assert names(tmp_path) == []


@pytest.mark.parametrize("option", ["--save", "--report"])
def test_files_that_exist_are_replaced_with_force_only(tmp_path, option):
    (tmp_path / "old").write_text("mine")
    message = refuse(tmp_path, "derive", CMCP, option, "old")
    assert f"old exists; replace it with --force, or name another file with {option}" in message
    assert (tmp_path / "old").read_text() == "mine"
    succeed(tmp_path, "derive", CMCP, option, "old", "--force")
    assert "derived" in (tmp_path / "old").read_text()


def test_quiet_prints_only_what_is_not_in_a_file(tmp_path):
    assert "What is proven" in succeed(tmp_path, "derive", CMCP, "--quiet")
    ran = run(tmp_path, "derive", CMCP, "--quiet", "--save", "rule.py")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_without_sympy_the_error_says_what_to_install(tmp_path, monkeypatch):
    for name in [one for one in sys.modules if one.partition(".")[0] == "sympy" or one.startswith("maxcosine.derive")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert "pip install 'maxcosine[derive]'" in refuse(tmp_path, "derive", CMCP, "--save", "rule.py")
    assert names(tmp_path) == []
