"""``maxcosine convert``: parse once, and read many times."""

from __future__ import annotations

import json as json_module
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from maxcosine.cli.options import BadLines, Data, Examples, Json, Reading, check_outputs, one_by_one


@one_by_one
def convert(
    data: Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="Where to write the examples.")
    ],
    reading: Reading,
    examples: Examples,
    float64: Annotated[bool, typer.Option("--float64", help="Values of double precision.")] = False,
    bad_lines: BadLines = None,
    json: Json = False,
) -> None:
    """Parse files once, and write their examples as a cache that is read many times faster.

    All commands take it in place of the text, and learn the same model from it, to the bit. How features are
    read is decided here: hashed or exact, normalized, in which precision. It is an Arrow file: other programs
    read it, too, with any library of Apache Arrow.

    \b
    maxcosine convert clicks.svm.gz --output clicks.arrow
    maxcosine convert 'day-*.vw' --output ads.arrow --bits 22 --normalize l2
    maxcosine train ads.arrow --model ads.model --passes 10
    """
    from contextlib import ExitStack

    from maxcosine import files
    from maxcosine.cli.display import ConversionWatch
    from maxcosine.cli.tables import show_conversion
    from maxcosine.stream.cache import writing
    from maxcosine.stream.chunks import Stream

    outputs = {"output": output, **({} if bad_lines is None else {"bad-lines": bad_lines})}
    check_outputs(outputs, data)
    begun = time.perf_counter()
    with ExitStack() as stack:
        kept = None if bad_lines is None else stack.enter_context(files.writing(bad_lines))
        stream = Stream(
            data,
            **reading.of_stream(),
            **examples.of_stream(),
            dtype="float64" if float64 else "float32",
            bad_lines=kept,
        )
        watch = stack.enter_context(ConversionWatch(stream.source))
        n_examples = writing.write(stream, output, watch.update)
    outcome: dict[str, Any] = {
        "output": str(output),
        "examples": n_examples,
        "labels": len(stream.labels),
        **stream.options,
        "bytes_read": stream.source.total_bytes,
        "bytes_written": output.stat().st_size,
        "bad_lines": stream.n_bad,
        "first_bad_lines": stream.first_bad,
        "seconds": time.perf_counter() - begun,
    }
    if json:
        typer.echo(json_module.dumps(outcome))
    else:
        show_conversion(outcome)
