"""The package without Spark."""

import subprocess
import sys

REFUSE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pyarrow"):
            raise ImportError(name=name)
sys.meta_path.insert(0, Refuse())
import maxcosine.distributed
try:
    import maxcosine.distributed.spark
except ImportError as error:
    print(error)
"""


def test_only_its_own_module_needs_spark_and_says_so():
    done = subprocess.run([sys.executable, "-c", REFUSE], check=True, capture_output=True, text=True)
    assert done.stdout == "pyarrow is missing; install it with: pip install 'maxcosine[spark]'\n"
