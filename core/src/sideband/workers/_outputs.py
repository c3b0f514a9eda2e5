"""What a worker's process writes to its own standard output and error, past the runtime."""

from __future__ import annotations

import os
from collections.abc import Callable

import anyio

from ._logs import LineSplitter
from ._sandbox import WorkerProcess

__all__ = ["read_outputs"]

_CHUNK = 65_536


async def read_outputs(process: WorkerProcess, take: Callable[[str, str], None], done: anyio.Event) -> None:
    """Read both descriptors until they are closed.

    Args:
        process: the worker.
        take: gets each line: ``stdout`` or ``stderr``, and the text.
        done: set when both have ended.
    """
    async with anyio.create_task_group() as readers:
        readers.start_soon(_read, process.stdout, "stdout", take)
        readers.start_soon(_read, process.stderr, "stderr", take)
    done.set()


async def _read(descriptor: int, stream: str, take: Callable[[str, str], None]) -> None:
    splitter = LineSplitter()
    while data := await _read_some(descriptor):
        for text in splitter.feed(data):
            take(stream, text)
    for text in splitter.close():
        take(stream, text)


async def _read_some(descriptor: int) -> bytes:
    while True:
        # Waiting first lets the calls run while a worker floods its output.
        await anyio.wait_readable(descriptor)
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
