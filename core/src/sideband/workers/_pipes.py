"""The three connections of a worker: the protocol's, and those that its output goes to."""

from __future__ import annotations

import socket

from attrs import define

__all__ = ["WorkerPipes"]

_SOCKET_BUFFER = 256 * 1024


@define(eq=False)
class WorkerPipes:
    """Both ends of each. Whoever opened them closes them.

    All are socket pairs: what is open as a pipe can be opened once more, for the other direction, through ``/proc``.

    Attributes:
        channel: the host's end of the protocol, non-blocking.
        stdout: the host's end of the standard output, to read from, non-blocking.
        stderr: the same for the standard error.
        theirs: the worker's ends, in this order.

    Example:
        >>> pipes = WorkerPipes.open()
        >>> socket.send_fds(control, [order], [end.fileno() for end in pipes.theirs])
        >>> pipes.close_theirs()
    """

    channel: socket.socket
    stdout: socket.socket
    stderr: socket.socket
    theirs: tuple[socket.socket, ...]

    @classmethod
    def open(cls) -> WorkerPipes:
        """Make them.

        Raises:
            OSError: there are no descriptors left.
        """
        opened: list[socket.socket] = []
        try:
            for _ in range(3):
                opened += socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError:
            for end in opened:
                end.close()
            raise
        channel, stdout, stderr = opened[::2]
        for end in opened[:2]:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        for end in (stdout, stderr):
            end.shutdown(socket.SHUT_WR)
        for end in (channel, stdout, stderr):
            end.setblocking(False)
        return cls(channel, stdout, stderr, tuple(opened[1::2]))

    def close_theirs(self) -> None:
        """Close the worker's ends, once it has them: else nobody would notice that it has ended."""
        for end in self.theirs:
            end.close()

    def close(self) -> None:
        """Close all of them. Can be called again."""
        self.close_theirs()
        for end in (self.channel, self.stdout, self.stderr):
            end.close()
