"""The limits of a connection."""

from __future__ import annotations

from attrs import frozen


@frozen
class AcpLimits:
    """What a client may ask for.

    Attributes:
        sessions: the maximum number of open sessions.
        requests: the maximum number of requests in progress.
        message: the maximum size of a message in bytes.
        parts: the maximum number of parts of a prompt.
        servers: the maximum number of MCP servers that are passed for a session.
        waiting: the maximum number of characters that wait for a client that does not read.
        listed: the number of sessions on a page of the list.
        seconds: how long runs may take to end when the connection ends.
    """

    sessions: int = 16
    requests: int = 64
    message: int = 64 << 20
    parts: int = 200
    servers: int = 16
    waiting: int = 32 << 20
    listed: int = 50
    seconds: float = 10.0
