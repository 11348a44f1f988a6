"""Only the modules for Dask and Spark need these packages; they say how to install them."""

import subprocess
import sys

SCRIPT = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in ("dask", "pyspark", "pyarrow"):
            raise ImportError(name=name)
sys.meta_path.insert(0, Hide())
import maxcosine.distributed
for on in ("dask-local:1", "spark"):
    try:
        maxcosine.distributed.train_files("some.svm", maxcosine.MCPClassifier(), on)
    except ImportError as error:
        print(error)
"""


def test_error_names_the_extra_to_install():
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "dask is missing; install it with: pip install 'maxcosine[dask]'",
        "pyarrow is missing; install it with: pip install 'maxcosine[spark]'",
    ]
