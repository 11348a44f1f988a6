"""Learn and predict on Spark, where the data are.

Each partition of a DataFrame, or each piece of a text file, is learnt by a task of its own; what was
learnt is merged on the executors. `MaxCosineClassifier` is an Estimator of `pyspark.ml`.
"""

try:
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(f"{error.name} is missing; install it with: pip install 'maxcosine[spark]'") from error

from maxcosine.distributed.spark.classifier import MaxCosineClassifier, MaxCosineModel
from maxcosine.distributed.spark.files import train_files
from maxcosine.distributed.spark.session import JavaMissing, session
from maxcosine.distributed.spark.watch import ExecutorsLost

# Saved pipelines name their classes: by where they are public, whatever file they are in.
MaxCosineClassifier.__module__ = MaxCosineModel.__module__ = __name__

__all__ = ["ExecutorsLost", "JavaMissing", "MaxCosineClassifier", "MaxCosineModel", "session", "train_files"]
