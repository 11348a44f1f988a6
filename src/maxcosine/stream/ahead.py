"""Blocks read and parsed ahead of whoever asks for them, in order, by threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from queue import SimpleQueue

from maxcosine.stream.parsed import Parsed
from maxcosine.stream.source import Block

Result = tuple[Block, Parsed | None]
Answer = SimpleQueue[Parsed | None | BaseException]
"""Of a block, what was found, or what went wrong: one of them, once it is there."""


class Ahead:
    """One thread reads, others parse, and iterating gives what they found, in the order of the data.

    Nothing is read while more than `most_bytes` have been read and not been dealt with: what was asked for
    counts until the next is.
    """

    def __init__(
        self,
        blocks: Generator[tuple[Block, str]],
        parse: Callable[[Block, str], Parsed | None],
        threads: int,
        most_bytes: int,
    ) -> None:
        self._blocks, self._parse, self._most_bytes = blocks, parse, most_bytes
        self._read_blocks: SimpleQueue[tuple[Block, str, Answer] | None] = SimpleQueue()
        self._in_order: SimpleQueue[tuple[Block, Answer] | BaseException | None] = SimpleQueue()
        self._bytes, self._ended = 0, False
        self._room = threading.Condition()
        # Daemons: the one that reads may wait for a pipe that never says anything, and nobody else should.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._parsers = [threading.Thread(target=self._parse_blocks, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Ahead:
        for thread in (self._reader, *self._parsers):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._room:
            self._ended = True
            self._room.notify()
        for _ in self._parsers:
            self._read_blocks.put(None)
        for thread in self._parsers:
            thread.join()

    def __iter__(self) -> Iterator[Result]:
        while (given := self._in_order.get()) is not None:
            if isinstance(given, BaseException):
                raise given
            block, answer = given
            parsed = answer.get()
            if isinstance(parsed, BaseException):
                raise parsed
            size = block.size
            del given
            yield block, parsed
            del block, parsed
            with self._room:
                self._bytes -= size
                self._room.notify()

    def _read(self) -> None:
        """In a thread of its own."""
        try:
            while self._has_room() and (found := next(self._blocks, None)) is not None:
                with self._room:
                    self._bytes += found[0].size
                answer: Answer = SimpleQueue()
                self._read_blocks.put((*found, answer))
                self._in_order.put((found[0], answer))
                del found  # before there is another one
            self._in_order.put(None)
        except BaseException as error:  # it is raised where the block was asked for
            self._in_order.put(error)
        finally:
            self._blocks.close()

    def _parse_blocks(self) -> None:
        """In several threads."""
        while (given := self._read_blocks.get()) is not None:
            block, format, answer = given
            if not self._ended:
                try:
                    answer.put(self._parse(block, format))
                except BaseException as error:  # likewise
                    answer.put(error)
            del given, block  # before waiting for another one

    def _has_room(self) -> bool:
        """Wait until there is room for one more block; False if nobody asks any more."""
        with self._room:
            self._room.wait_for(lambda: self._ended or self._bytes <= self._most_bytes)
            return not self._ended
