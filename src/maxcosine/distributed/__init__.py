"""Learn shards of data on many machines and merge the results into one certified model.

The result depends on the shards and their order. It does not depend on timing or on the number of workers.
`fit` runs in this process, `maxcosine.distributed.dask` and `maxcosine.distributed.spark` on clusters.
"""

from maxcosine.distributed.clusters import train_files
from maxcosine.distributed.jobs import Job, PartialModel, Tally, fit, run_job
from maxcosine.distributed.text_shards import TextShard, plan

__all__ = ["Job", "PartialModel", "Tally", "TextShard", "fit", "plan", "run_job", "train_files"]
