"""Blocks read and parsed ahead of whoever asks for them, in order, by threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator, Iterator
from queue import SimpleQueue

from maxcosine.stream.parsed import Parsed
from maxcosine.stream.source import Block

Result = tuple[Block, Parsed | None]
Answer = SimpleQueue[Result | BaseException]
"""Of a block, what was found, or what went wrong: one of them, once it is there."""


class Ahead:
    """Threads that read, one at a time, and parse what they have read; iterating gives what they found, in
    the order of the data.

    Nothing is read while more than `most_bytes`, or more blocks than one and one a thread, have been read and
    not been dealt with: what was asked for counts until the next is.
    """

    def __init__(
        self,
        blocks: Generator[tuple[Block, str]],
        parse: Callable[[Block, str], Result],
        threads: int,
        most_bytes: int,
    ) -> None:
        self._blocks, self._parse, self._most_bytes = blocks, parse, most_bytes
        self._answers: SimpleQueue[Answer | BaseException | None] = SimpleQueue()
        self._most_blocks = threads + 1
        self._n_blocks, self._bytes, self._ended = 0, 0, False
        self._room = threading.Condition()
        self._reader: threading.Thread | None = None
        # Daemons: one that reads may wait for a pipe that never says anything, and nobody else should.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Ahead:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if sys.is_finalizing():  # the threads are gone, perhaps with a lock
            return
        with self._room:
            self._end()
        for thread in self._threads:
            if thread is not self._reader:
                thread.join()
        with self._room:
            if self._reader is None:
                self._blocks.close()

    def __iter__(self) -> Iterator[Result]:
        while (given := self._answers.get()) is not None:
            found = given if isinstance(given, BaseException) else given.get()
            if isinstance(found, BaseException):
                raise found
            size = found[0].size
            yield found
            del given, found
            with self._room:
                self._n_blocks -= 1
                self._bytes -= size
                self._room.notify()

    def _work(self) -> None:
        """In each of the threads."""
        while (read := self._next()) is not None:
            block, format, answer = read
            try:
                answer.put(self._parse(block, format))
            except BaseException as error:  # it is raised where the block was asked for
                answer.put(error)
            del read, block, answer  # before there is another one

    def _next(self) -> tuple[Block, str, Answer] | None:
        """Read a block, once it is this thread's turn; None if there is no more, or nobody asks any more."""
        with self._room:
            self._room.wait_for(lambda: self._ended or (self._reader is None and self._has_room()))
            if self._ended:
                return None
            self._reader = threading.current_thread()
        found, error = None, None
        try:
            found = next(self._blocks, None)
        except BaseException as raised:  # likewise
            error = raised
        answer: Answer = SimpleQueue()
        with self._room:
            self._reader = None
            if self._ended:
                self._blocks.close()
                return None
            if found is None:
                self._answers.put(error)
                self._end()
                return None
            self._answers.put(answer)
            self._n_blocks += 1
            self._bytes += found[0].size
            self._room.notify()
        return *found, answer

    def _has_room(self) -> bool:
        return self._n_blocks <= self._most_blocks and self._bytes <= self._most_bytes

    def _end(self) -> None:
        self._ended = True
        self._room.notify_all()
