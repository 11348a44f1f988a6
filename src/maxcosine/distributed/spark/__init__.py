"""Learn and predict on Spark.

Each partition of a DataFrame, or each shard of text files, is learnt by one task, and executors merge the
models. `MaxCosineClassifier` is an Estimator of `pyspark.ml`.
"""

try:
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(f"{error.name} is missing; install it with: pip install 'maxcosine[spark]'") from error

from maxcosine.distributed.spark.classifier import MaxCosineClassifier
from maxcosine.distributed.spark.cluster import ExecutorsLost, JavaMissing, session
from maxcosine.distributed.spark.model import MaxCosineModel

# Saved pipelines refer to classes by module. This name stays when a class moves to another file.
MaxCosineClassifier.__module__ = MaxCosineModel.__module__ = __name__

__all__ = ["ExecutorsLost", "JavaMissing", "MaxCosineClassifier", "MaxCosineModel", "session"]
