"""Requests as a server reads them, and what an answer can do with their connection."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import parse_headers
from io import BytesIO
from socket import socket
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen

PATIENCE = 20.0
"""The seconds after which an answer that waits for its client or its test gives up."""
SERVER_THREAD = "sideband http_server"
"""The name of the threads of servers."""
_LONGEST_LINE = 1 << 20
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

Headers = Iterable[tuple[str, str]]


@frozen
class HttpRequest:
    """A request that a server got.

    Attributes:
        method: the method, such as ``GET``.
        path: the target as sent, with the query.
        headers: the headers, by name in lower case; values of one name are joined by ``, ``.
        body: the body, without the framing of ``Transfer-Encoding: chunked``.
        head: the bytes of the request line and the headers.
        client: the address of the connection. Requests on one connection have the same.

    Example:
        >>> request = HttpRequest("GET", "/notes?page=2", {"accept": "*/*"}, b'{"a": 1}', b"GET …", ("127.0.0.1", 1))
        >>> request.query, request.json()
        ({'page': '2'}, {'a': 1})
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    head: bytes = field(repr=False)
    client: tuple[Any, ...]

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the query; of several with one name, the first."""
        return dict(reversed(parse_qsl(urlsplit(self.path).query, keep_blank_values=True)))

    def json(self) -> Any:
        """Return the body as JSON; ``None`` if it is empty."""
        return json.loads(self.body) if self.body else None


@frozen(eq=False)
class HttpExchange:
    r"""A request with its connection: the argument of the functions that answer requests.

    Such a function sends bytes, and returns whether the server keeps the connection open.

    Attributes:
        request: the request.
        connection: the socket, for answers that shut it down or read from it.
        released: set when the test ends; answers that wait, wait for it.
        arrived: set when an answer that waits has begun to wait.
        closed: set when the client has closed a connection that the server held open.

    Example:
        >>> def answer(exchange: HttpExchange) -> bool:
        ...     exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        ...     return False
    """

    request: HttpRequest
    connection: socket
    released: threading.Event
    arrived: threading.Event
    closed: threading.Event

    def send(self, data: bytes) -> None:
        """Send exactly these bytes."""
        self.connection.sendall(data)

    def respond(self, body: bytes = b"", *, status: int = 200, headers: Headers = (), kind: str = "text/plain") -> bool:
        """Send a complete response.

        Args:
            body: the body, which is not sent in response to ``HEAD``.
            status: the status.
            headers: more headers.
            kind: the ``Content-Type``.

        Returns:
            ``True``: the connection stays open.
        """
        self.send(response(body, status=status, headers=headers, kind=kind, is_head=self.request.method == "HEAD"))
        return True

    def wait(self) -> bool:
        """Wait until the client closes the connection, or the test ends. Return ``False``."""
        self.arrived.set()
        self.connection.settimeout(0.05)
        for _ in range(int(PATIENCE / 0.05)):
            if self.released.is_set():
                break
            try:
                if self.connection.recv(65_536):
                    continue
            except TimeoutError:
                continue
            except OSError:
                pass
            self.closed.set()
            break
        return False

    def sleep(self, seconds: float) -> bool:
        """Wait for a duration. Return whether the test ended meanwhile."""
        return self.released.wait(seconds)


def response(
    body: bytes, *, status: int, headers: Headers = (), kind: str, is_head: bool = False, chunked: bool = False
) -> bytes:
    """Return the bytes of a response."""
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))
    fields = [*([("Content-Type", kind)] if kind else []), *headers, framing]
    lines = [f"HTTP/1.1 {status} {_reason(status)}", *(f"{name}: {value}" for name, value in fields)]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    if is_head:
        return head
    if not chunked:
        return head + body
    pieces = [body[start : start + 100] for start in range(0, len(body), 100)]
    return b"".join([head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"])


def _reason(status: int) -> str:
    with suppress(ValueError):
        return HTTPStatus(status).phrase
    return "Unknown"


def read_request(file: BinaryIO, connection: socket, client: tuple[Any, ...]) -> HttpRequest | None:
    """Return the next request of a connection; ``None`` at its end, or if it breaks off.

    Raises:
        ValueError: if it is not a request.
    """
    first = file.readline(_LONGEST_LINE)
    if not first.strip():
        return None
    method, path, version = first.decode("latin-1").split(" ", 2)
    if not version.startswith("HTTP/"):
        raise ValueError("not a request line")
    head = first
    while (line := file.readline(_LONGEST_LINE)).strip():
        head += line
    if not line:
        return None
    found = parse_headers(BytesIO(head[len(first) :] + b"\r\n"))
    headers: dict[str, str] = {}
    for name, value in found.items():
        known = headers.get(name.lower())
        headers[name.lower()] = value if known is None else f"{known}, {value}"
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(_CONTINUE)
    body = _read_body(file, headers)
    return None if body is None else HttpRequest(method, path, headers, body, head, client)


def _read_body(file: BinaryIO, headers: Mapping[str, str]) -> bytes | None:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = b""
        while size := int(re.split(rb"[;\r\n]", file.readline(_LONGEST_LINE))[0], 16):
            body += file.read(size)
            file.readline()
        while file.readline(_LONGEST_LINE).strip():
            pass
        return body
    length = int(headers.get("content-length", 0))
    body = file.read(length)
    return body if len(body) == length else None
