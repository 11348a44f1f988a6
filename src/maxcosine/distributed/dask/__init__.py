"""Learn shards on the workers of a Dask cluster.

Each shard is one task per round, and workers also merge the models. The process that starts a job holds no
data and receives one model in the end. If a worker is lost, others repeat its tasks and get the same bits.
"""

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(f"{error.name} is missing; install it with: pip install 'maxcosine[dask]'") from error

from maxcosine.distributed.dask.classifier import DaskOnlineClassifier, fit
from maxcosine.distributed.dask.cluster import WorkersLost, connected

__all__ = ["DaskOnlineClassifier", "WorkersLost", "connected", "fit"]
