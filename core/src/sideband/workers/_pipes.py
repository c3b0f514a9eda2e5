"""The three connections of a worker: the protocol, standard output and standard error."""

from __future__ import annotations

import socket

from attrs import define

__all__ = ["WorkerPipes"]

_SOCKET_BUFFER = 256 * 1024


@define(eq=False)
class WorkerPipes:
    """Both ends of all connections. The caller of ``open`` must close them.

    All are socket pairs, because a pipe can be reopened through ``/proc`` for the opposite direction.

    Attributes:
        channel: the host's end of the protocol, non-blocking.
        stdout: the host's end of standard output, read-only and non-blocking.
        stderr: the host's end of standard error, read-only and non-blocking.
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
        """Create all connections.

        Raises:
            OSError: if no descriptors are available.
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
        """Close the worker's ends after the fork, so that the host sees end-of-file when the worker exits."""
        for end in self.theirs:
            end.close()

    def close(self) -> None:
        """Close all ends. Idempotent."""
        self.close_theirs()
        for end in (self.channel, self.stdout, self.stderr):
            end.close()
