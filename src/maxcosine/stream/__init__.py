"""Examples from files larger than memory, one block of lines after another.

>>> import maxcosine.stream, tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "few.svm"
>>> _ = path.write_text("+1 1:0.5 3:1\\n-1 2:2\\n")
>>> for X, labels, weights in maxcosine.stream.open(path):
...     print(X.shape, labels.tolist(), weights)
(2, 4) ['1', '-1'] None
"""

from maxcosine.stream.chunks import Chunk, Stream
from maxcosine.stream.source import StreamError

open = Stream

__all__ = ["Chunk", "Stream", "StreamError", "open"]
