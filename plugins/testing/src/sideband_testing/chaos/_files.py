"""Full disks and torn files."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Make the operating system refuse to let a file of this process grow beyond a size, as a full disk does.

    The error is ``OSError`` with ``errno.EFBIG``. Nothing but real writes is affected, in all threads.

    Args:
        size: the size in bytes.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def tear(path: Path, at: int) -> bytes:
    """Cut a file at a byte, as a crash during a write leaves it, and return what was cut off.

    Args:
        path: the file, such as that of a ledger of a host that has ended.
        at: the number of bytes to keep; if negative, the number to cut off.
    """
    content = path.read_bytes()
    path.write_bytes(content[:at])
    return content[at:]
