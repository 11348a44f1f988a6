"""Read and parse blocks ahead of the thread that learns from them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")
Parsed = TypeVar("Parsed")


def prefetch(blocks: Generator[Block, None, None], parse: Callable[[Block], Parsed], threads: int) -> Iterator[Parsed]:
    """Parse blocks in several threads and give the results in the order of the blocks.

    One more thread reads. At most `threads` + 1 blocks are in memory: the one that the caller works on, and
    one for each thread. With one thread, everything happens in the caller's thread.

    An error of reading or parsing is raised when its block is due.
    """
    if threads == 1:
        yield from map(parse, blocks)
        return
    results: queue.SimpleQueue[Future[Parsed] | None] = queue.SimpleQueue()
    room = threading.Semaphore(threads + 1)
    stopped = threading.Event()
    parsers = ThreadPoolExecutor(threads, "maxcosine-parse")

    def read() -> None:
        try:
            while room.acquire() and not stopped.is_set():
                block = next(blocks, None)
                if block is None:
                    break
                results.put(parsers.submit(parse, block))
                del block
        except BaseException as error:
            failed: Future[Parsed] = Future()
            failed.set_exception(error)
            results.put(failed)
        finally:
            blocks.close()
            results.put(None)

    # A daemon: after Ctrl-C it may still wait for a pipe, and must not keep the process alive.
    threading.Thread(target=read, daemon=True, name="maxcosine-read").start()
    try:
        for result in iter(results.get, None):
            yield result.result()
            del result  # before the next one is waited for
            room.release()
    finally:
        stopped.set()
        room.release()
        parsers.shutdown(cancel_futures=True)
