"""scikit-learn's own conformance checks, with nothing switched off."""

import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator


@pytest.mark.filterwarnings("ignore::maxcosine.SortedLabelsWarning")
def test_passes_every_check_of_scikit_learn(learner):
    checks = check_estimator(learner, on_fail=None, on_skip=None)
    assert {check["check_name"]: check["exception"] for check in checks if check["status"] == "failed"} == {}
    assert {check["status"] for check in checks} <= {"passed", "skipped"}


def test_no_tag_switches_checks_off(learner):
    tags = get_tags(learner)
    assert not tags.classifier_tags.poor_score
    assert not tags.no_validation
    assert not tags._skip_test
    assert not tags.non_deterministic
    assert tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
