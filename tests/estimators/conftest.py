import pytest
from sklearn.base import clone

from maxcosine import OnlineClassifier
from tests.learners import STORAGES, every_learner, named

DIFFERENT = [OnlineClassifier("mcp"), named("aggressive_romma"), named("pa1"), named("norma")]
OTHERS = [each for each in every_learner() if repr(each) not in map(repr, DIFFERENT)]


@pytest.fixture(params=[*DIFFERENT, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)], ids=repr)
def learner(request):
    """Classifiers of different kinds; if there is time every named class and every rule."""
    return clone(request.param)


@pytest.fixture(params=[2, 3])
def n_classes(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["last", "average"])
def average(request):
    return request.param


@pytest.fixture(params=STORAGES)
def storage(request):
    return STORAGES[request.param]
