"""`maxcosine train --on spark`."""

import pytest

from tests.cli.test_cluster import assert_the_model_is_that_of_the_shards

pytestmark = pytest.mark.spark


def test_the_model_is_that_of_the_shards(tmp_path):
    assert_the_model_is_that_of_the_shards(tmp_path, "spark")
