"""``maxcosine convert``: parse once, and read many times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.cli.options import BadLines, Data, Examples, Json, Reading, check_outputs, flatten_options
from maxcosine.cli.terminal import Quiet


@flatten_options
def convert(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="Parquet if it ends in .parquet, else Arrow.")
    ],
    reading: Reading,
    examples: Examples,
    float64: Annotated[bool, typer.Option("--float64", help="Values of double precision.")] = False,
    bad_lines: BadLines = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Parse files once, and write their examples as a cache that is read many times faster.

    All commands take it instead of the text, and learn the same model from it, to the bit. How features are
    read is decided here: hashed or exact, normalized, in which precision. It is an Arrow IPC or Parquet file:
    other programs read it, too.

    \b
    maxcosine convert clicks.svm.gz --output clicks.arrow
    maxcosine convert 'day-*.vw' --output ads.parquet --bits 22 --normalize l2
    maxcosine train ads.parquet --model ads.model --passes 10
    """
    from contextlib import ExitStack

    from maxcosine import files
    from maxcosine.cli.display import ProgressLine
    from maxcosine.cli.tables import print_outcome, show_conversion
    from maxcosine.data import ReadOptions, Stream, write_cache

    outputs = {"output": output, **({} if bad_lines is None else {"bad-lines": bad_lines})}
    check_outputs(outputs, data)
    started = time.perf_counter()
    options = ReadOptions(**vars(reading), **examples.fields(), dtype="float64" if float64 else "float32")
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        stream = Stream(data, options, bad_lines=kept)
        line = stack.enter_context(ProgressLine())
        size = stream.inputs.total_bytes

        def show_progress(n: int) -> None:
            share = f", {stream.inputs.read_bytes / size:.0%}" if size else ""
            line.update(lambda: f"{n:,} examples{share}")

        n_examples = write_cache(stream, output, show_progress)
    outcome: dict[str, Any] = {
        "output": str(output),
        "examples": n_examples,
        "labels": len(stream.labels),
        **stream.options.feature_options,
        "bytes_read": size,
        "bytes_written": output.stat().st_size,
        "bad_lines": stream.n_bad,
        "first_bad_lines": stream.bad.messages,
        "seconds": time.perf_counter() - started,
    }
    print_outcome(outcome, show_conversion, json=json, quiet=quiet)
