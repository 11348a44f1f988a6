"""Blocks read and parsed ahead of whoever asks for them, in order, by threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from maxcosine.stream.parsed import Parsed
from maxcosine.stream.source import Block

Result = tuple[Block, Parsed | None]


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
        self._pool = ThreadPoolExecutor(threads)
        self._parsed: SimpleQueue[tuple[Block, Future[Parsed | None]] | BaseException | None] = SimpleQueue()
        self._bytes, self._ended = 0, False
        self._room = threading.Condition()
        # A daemon: it may wait for a pipe that never says anything, and nobody else should.
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Ahead:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._room:
            self._ended = True
            self._room.notify()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __iter__(self) -> Iterator[Result]:
        while (given := self._parsed.get()) is not None:
            if isinstance(given, BaseException):
                raise given
            size = given[0].size
            yield given[0], given[1].result()
            del given
            with self._room:
                self._bytes -= size
                self._room.notify()

    def _read(self) -> None:
        """In a thread of its own."""
        try:
            while self._has_room() and (found := next(self._blocks, None)) is not None:
                with self._room:
                    self._bytes += found[0].size
                self._parsed.put((found[0], self._pool.submit(self._parse, *found)))
                del found  # before there is another one
            self._parsed.put(None)
        except BaseException as error:  # it is raised where the block was asked for
            self._parsed.put(error)
        finally:
            self._blocks.close()

    def _has_room(self) -> bool:
        """Wait until there is room for one more block; False if nobody asks any more."""
        with self._room:
            self._room.wait_for(lambda: self._ended or self._bytes <= self._most_bytes)
            return not self._ended
