"""Blocks read and parsed ahead of whoever asks for them, in order, by threads."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Generic, TypeVar

Block = TypeVar("Block")
Found = TypeVar("Found")


class _Task(Generic[Found]):
    """A block that was read, and what was found in it, or what went wrong, once it is there."""

    def __init__(self, size: int, found: Found | BaseException | None = None) -> None:
        self.size, self.found = size, found


class Ahead(Generic[Block, Found]):
    """Threads that read blocks, one at a time, and parse what they have read; iterating gives what they
    found, in the order of the data.

    `blocks` are given with their sizes, in bytes. Once one is parsed, the `size` of what was found counts;
    until then, that of what was found last, if it is larger.

    Nothing is read while more than `most_bytes`, or more blocks than one and one a thread, have been read and
    not been dealt with: what was asked for counts until the next is.

    If it `helps`, whoever asks is one of the threads: instead of waiting for a block that another one parses,
    it reads and parses the next. There are then never more threads at work than processors; with one more,
    two of them would often share one processor while another has nothing to do. Reading must not wait for
    others then, as what is there would wait, too.
    """

    def __init__(
        self,
        blocks: Generator[tuple[Block, int]],
        parse: Callable[[Block], Found],
        threads: int,
        most_bytes: int,
        *,
        size: Callable[[Found], int],
        helps: bool,
    ) -> None:
        self._blocks, self._parse, self._most_bytes, self._helps = blocks, parse, most_bytes, helps
        self._size = size
        self._tasks: deque[_Task[Found]] = deque()
        """In the order of the data."""
        self._most_blocks = threads + 1
        self._n_blocks, self._bytes, self._last_size = 0, 0, 0
        self._ended = False
        """There is nothing more to read, or nobody asks any more."""
        # A lock of its own: `with` a condition is Python code, in which Ctrl-C would leave it locked.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._reader: threading.Thread | None = None
        # Daemons: one that reads may wait for a pipe that never says anything, and nobody else should.
        others = range(threads - 1 if helps else threads)
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in others]

    def __enter__(self) -> Ahead[Block, Found]:
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if sys.is_finalizing():  # the threads are gone, perhaps with a lock
            return
        with self._lock:
            self._ended = True
            self._changed.notify_all()
        me = threading.current_thread()
        for thread in self._threads:
            if thread.ident is not None and thread not in (self._reader, me):
                thread.join()
        with self._lock:
            if self._reader in (None, me):
                self._blocks.close()

    def __iter__(self) -> Iterator[Found]:
        while True:
            with self._lock:
                self._changed.wait_for(
                    lambda: self._is_next_found() or self._is_over() or (self._helps and self._may_read())
                )
                task = self._tasks.popleft() if self._is_next_found() else None
                if task is None:
                    if self._is_over():
                        return
                    self._reader = threading.current_thread()
            if task is None:
                self._read_and_parse(helping=True)
                continue
            found, size = task.found, task.size
            del task
            if isinstance(found, BaseException):
                try:
                    raise found
                finally:
                    del found  # which knows this frame: nothing of the block is kept
            assert found is not None
            given = [found]
            del found
            yield given.pop()  # so that nothing here refers to it while others deal with it
            with self._lock:
                self._n_blocks -= 1
                self._bytes -= size
                self._changed.notify_all()

    def _work(self) -> None:
        """In each of the other threads."""
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._ended or self._may_read())
                if self._ended:
                    return
                self._reader = threading.current_thread()
            self._read_and_parse()

    def _read_and_parse(self, *, helping: bool = False) -> None:
        """Deal with one block; it is this thread's turn to read.

        An error is raised where the block is asked for; but Ctrl-C, which whoever asks is told by, at once.
        """
        read, error = None, None
        try:
            read = next(self._blocks, None)
        except BaseException as raised:
            if helping and not isinstance(raised, Exception):
                raise
            error = raised
        task = _Task[Found](0 if read is None else read[1], error)
        with self._lock:
            self._reader = None
            task.size = max(task.size, self._last_size)
            if self._ended:
                self._blocks.close()
                return
            if read is None:
                self._ended = True
            else:
                self._n_blocks += 1
                self._bytes += task.size
            if read is not None or error is not None:
                self._tasks.append(task)
            self._changed.notify_all()
        if read is None:
            return
        found: Found | BaseException
        size = task.size
        try:
            found = self._parse(read[0])
            size = self._size(found)
        except BaseException as raised:
            if helping and not isinstance(raised, Exception):
                raise
            found = raised
        with self._lock:
            self._bytes += size - task.size
            task.found, task.size, self._last_size = found, size, size
            self._changed.notify_all()

    def _is_next_found(self) -> bool:
        return bool(self._tasks) and self._tasks[0].found is not None

    def _is_over(self) -> bool:
        return self._ended and not self._tasks

    def _may_read(self) -> bool:
        has_room = self._n_blocks <= self._most_blocks and self._bytes <= self._most_bytes
        return has_room and self._reader is None and not self._ended
