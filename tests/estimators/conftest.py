import pytest
from sklearn.base import clone

from maxcosine import RULES
from tests.estimators.learners import STORAGES, every_learner


@pytest.fixture(params=every_learner(), ids=repr)
def learner(request):
    """Each named class, and OnlineClassifier with each rule."""
    return clone(request.param)


@pytest.fixture(params=RULES)
def rule(request):
    return request.param


@pytest.fixture(params=[2, 3])
def n_classes(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["last", "average"])
def average(request):
    return request.param


@pytest.fixture(params=STORAGES)
def storage(request):
    return STORAGES[request.param]
