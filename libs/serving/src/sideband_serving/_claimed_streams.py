"""The standard input and output of the process, which nothing else in it can reach meanwhile."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from attrs import frozen


@frozen
class ClaimedStreams:
    """The descriptors of the standard input and output of the process, under other numbers.

    Attributes:
        input: what the client writes to.
        output: what the client reads.
    """

    input: int
    output: int


@contextmanager
def claimed_streams() -> Iterator[ClaimedStreams]:
    """Take the standard input and output for a block. What else reads gets nothing, what else prints goes to errors.

    Call it before plugins are imported: each may print.
    """
    _flush()
    claimed = ClaimedStreams(*(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 3) for one in (0, 1)))
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield claimed
    finally:
        _flush()  # what was printed meanwhile must not reach the client after all
        for mine, theirs in ((claimed.input, 0), (claimed.output, 1)):
            os.dup2(mine, theirs)
            os.close(mine)


def _flush() -> None:
    with suppress(OSError, ValueError):
        sys.stdout.flush()
