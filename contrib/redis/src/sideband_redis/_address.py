"""Addresses of servers."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from attrs import field, frozen

_EXAMPLES = "expected an address such as redis://user@host:6379/0, rediss://host or unix:///path/of/socket"


@frozen
class ServerAddress:
    """Where a server is, and who connects.

    Attributes:
        host: the name of its machine; empty for a socket.
        port: its port.
        socket: the path of its socket, or an empty text.
        is_encrypted: whether it is reached through TLS.
        user: the name of the user, or an empty text for the default one.
        password: the password, or an empty text.
        database: the number of the database.
    """

    host: str
    port: int
    socket: str
    is_encrypted: bool
    user: str
    password: str = field(repr=False)
    database: int

    def __str__(self) -> str:
        return f"socket {self.socket}" if self.socket else f"{self.host}:{self.port}"


def address_of(text: str) -> ServerAddress:
    """Return the parts of an address.

    Raises:
        ValueError: if it is invalid. The text does not contain the address, which may contain a password.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(_EXAMPLES) from None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.query or parts.fragment:
        raise ValueError(f"{_EXAMPLES}; options after `?` are settings of their own")
    if parts.scheme == "unix" and parts.path:
        return ServerAddress("", 0, unquote(parts.path), False, user, password, 0)
    database = parts.path.strip("/") or "0"
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or not (database.isascii() and database.isdigit()):
        raise ValueError(_EXAMPLES)
    is_encrypted = parts.scheme == "rediss"
    return ServerAddress(parts.hostname, port or 6379, "", is_encrypted, user, password, int(database))
