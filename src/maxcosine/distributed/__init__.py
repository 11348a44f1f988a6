"""Learn shards of data in many places, and merge what was learnt into one certified model.

The result depends on the shards and their order, not on timing or on how many workers there were.
`fit` learns them in this process; `maxcosine.distributed.dask` on a cluster.
"""

from maxcosine.distributed.clusters import train_files
from maxcosine.distributed.parts import Job, Part, close_round, combine, fit, fitted, here, learn, run
from maxcosine.distributed.shards import TextShard, plan
from maxcosine.distributed.tally import Tally

__all__ = [
    "Job",
    "Part",
    "Tally",
    "TextShard",
    "close_round",
    "combine",
    "fit",
    "fitted",
    "here",
    "learn",
    "plan",
    "run",
    "train_files",
]
