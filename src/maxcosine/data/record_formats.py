"""Records in files of any format, one input after another."""

from __future__ import annotations

from collections.abc import Generator

from maxcosine import core
from maxcosine.data.input_file import InputFile, is_table_file
from maxcosine.data.inputs import Inputs, Place
from maxcosine.data.raw_block import RawBlock
from maxcosine.data.record_text import RecordText, TextBlock
from maxcosine.data.table_files import TableFile


def raw_blocks(inputs: Inputs, format: str, start: Place) -> Generator[RawBlock, None, None]:
    """Read all records from a place on, in blocks."""

    def open_input(number: int) -> InputFile | TableFile:
        name = inputs.names[number]
        return TableFile(name) if is_table_file(name) else inputs.open_text(number)

    for number, file in inputs.opened(start, open_input):
        if isinstance(file, TableFile):
            yield from file.blocks(number, start.line if number == start.source else 0)
            continue
        text = RecordText(inputs.title(number), inputs.names[number], format)
        if number == start.source and start.offset:
            _read_beginning(text, inputs, number)
        for block in inputs.blocks_of(number, file, start, text.find_end):
            if not text.delimiter and block.stop > core.PADDING:  # a single line without an end
                text.begin(block.text())
            yield TextBlock(block, text)


def _read_beginning(text: RecordText, inputs: Inputs, number: int) -> None:
    """Read the header of an input that is read from a later place on."""
    with inputs.open_text(number) as file:
        for block in inputs.blocks_of(number, file, Place(number), text.find_end):
            if not text.delimiter:
                text.begin(block.text())
            return
