"""The server: it reads requests, keeps them, and answers as its test specifies."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, BinaryIO, Self
from urllib.parse import urlsplit

from .._errors import KitError
from ._exchange import PATIENCE, SERVER_THREAD, Headers, HttpExchange, HttpRequest, read_request, response
from ._routes import route

Answer = Callable[[HttpExchange], bool]


class HttpServer:
    """A real HTTP server on the loopback interface: the fixture ``http_server``.

    It answers by the path of a request: see the table of routes in the documentation of the kit. A test can set
    another answer, for all paths or for one. It replaces the one that was set before, unless it is to follow it: of
    several answers, each is given once, and the last one is repeated.

    Use it as a context manager where the fixture's scope does not fit. Each connection has a thread, which ends with
    the server. What a function that answers raises is raised again when the server is closed.

    Args:
        tls: whether to use TLS, with a certificate of an authority of its own, see ``ca_file``; or the context to use.

    Attributes:
        requests: the requests so far, oldest first.
        port: its port.
        sent: the number of bytes that floods have sent, which shows when a client stops to read.
        ca_file: the file with the certificate of its authority; ``None`` without TLS or with a context.
        arrived: set when an answer that waits for the client has begun to wait.
        closed: set when the client has closed the connection of such an answer.
        released: set when the server is closed. A test can set it to end the answers that wait.

    Raises:
        KitError: if TLS is requested and the package ``trustme`` is missing.

    Example:
        >>> with HttpServer() as server:
        ...     server.reply({"stars": 12}, path="/repos/sideband")
        ...     print(server.url("/repos/sideband").startswith("http://127.0.0.1:"))
        True
    """

    def __init__(self, *, tls: bool | ssl.SSLContext = False) -> None:
        self.requests: list[HttpRequest] = []
        self.sent = 0
        self.ca_file: Path | None = None
        self.arrived, self.closed, self.released = threading.Event(), threading.Event(), threading.Event()
        self._closing = ExitStack()
        self._context = tls if isinstance(tls, ssl.SSLContext) else self._issued() if tls else None
        self._answers: defaultdict[str | None, list[Answer]] = defaultdict(list)
        self._next: defaultdict[str | None, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._failures: list[Exception] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, name=SERVER_THREAD, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._failures:
            raise self._failures[0]

    @property
    def origin(self) -> str:
        """The origin, such as ``http://127.0.0.1:8000``."""
        return f"{'http' if self._context is None else 'https'}://127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        """Return the URL of a path."""
        return self.origin + path

    def another(self, *, tls: bool | ssl.SSLContext = False) -> Self:
        """Start another server of this class, which is closed with this one."""
        server = type(self)(tls=tls)
        self._closing.enter_context(server)
        return server

    def requests_to(self, path: str) -> list[HttpRequest]:
        """Return the requests to a path; its query counts if ``path`` has one."""
        return [one for one in self.requests if path in (one.path, urlsplit(one.path).path)]

    def reset(self) -> None:
        """Forget requests and answers, for a server that several tests share."""
        with self._lock:
            self.requests.clear()
            self._answers.clear()
            self._next.clear()
        self.arrived.clear()
        self.closed.clear()

    def answer(self, function: Answer, *, path: str | None = None, then: bool = False) -> None:
        """Answer requests with a function, which gets an ``HttpExchange``.

        Args:
            function: the function. It is called in the thread of the connection.
            path: the path, without a query, for whose requests it is; ``None`` for all.
            then: whether it follows the answers that were set before, instead of replacing them.
        """
        with self._lock:
            if not then:
                self._answers[path].clear()
                self._next[path] = 0
            self._answers[path].append(function)

    def reply(
        self,
        body: Any = b"",
        *,
        status: int = 200,
        headers: Headers = (),
        kind: str | None = None,
        chunked: bool = False,
        keep: bool = True,
        path: str | None = None,
        then: bool = False,
    ) -> None:
        """Answer requests with a complete response.

        Args:
            body: bytes, a text, or any other value, which is sent as JSON.
            status: the status.
            headers: more headers.
            kind: the ``Content-Type``; by default, that of the type of ``body``.
            chunked: whether to send the body with ``Transfer-Encoding: chunked``.
            keep: whether to keep the connection open.
            path, then: as for ``answer``.
        """
        content, usual = _content(body)
        data, head = (
            response(
                content, status=status, headers=tuple(headers), kind=usual if kind is None else kind,
                chunked=chunked, is_head=is_head,
            )
            for is_head in (False, True)
        )  # fmt: skip

        def send(exchange: HttpExchange) -> bool:
            exchange.send(head if exchange.request.method == "HEAD" else data)
            return keep

        self.answer(send, path=path, then=then)

    def send(self, *pieces: bytes, path: str | None = None, then: bool = False) -> None:
        """Answer requests with exactly these bytes, then close the connection."""

        def send(exchange: HttpExchange) -> bool:
            for piece in pieces:
                exchange.send(piece)
            return False

        self.answer(send, path=path, then=then)

    def hold(self, data: bytes = b"", *, path: str | None = None, then: bool = False) -> None:
        """Answer requests with these bytes, then nothing more, until the client closes the connection."""

        def send(exchange: HttpExchange) -> bool:
            exchange.send(data)
            return exchange.wait()

        self.answer(send, path=path, then=then)

    def flood(
        self, start: bytes, piece: bytes, *, every: float = 0.0, path: str | None = None, then: bool = False
    ) -> None:
        """Answer requests with ``start``, then with ``piece`` again and again, until the client closes the connection.

        Args:
            start: the bytes to begin with.
            piece: the bytes to repeat.
            every: the seconds between the pieces.
            path, then: as for ``answer``.
        """

        def send(exchange: HttpExchange) -> bool:
            exchange.send(start)
            while not exchange.sleep(every):
                exchange.send(piece)
                self.sent += len(piece)
            return False

        self.answer(send, path=path, then=then)

    def close(self) -> None:
        """Close the server and its connections, and wait for its threads."""
        self.released.set()
        self._closing.close()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._accepting.ident is not None:
            self._accepting.join(PATIENCE)
        with self._lock:  # so that no connection is replaced by a secure one meanwhile
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)

    def serve(self, connection: socket.socket) -> None:
        """Serve a connection until it ends. A subclass may speak another protocol."""
        client = connection.getpeername()
        with connection.makefile("rb") as file:
            while (request := _request(file, connection, client)) is not None:
                with self._lock:
                    self.requests.append(request)
                    attempt = len([one for one in self.requests if one.path == request.path])
                    answer = self._answer_to(urlsplit(request.path).path)
                exchange = HttpExchange(request, connection, self.released, self.arrived, self.closed)
                if not (route(exchange, attempt) if answer is None else answer(exchange)):
                    return

    def _answer_to(self, path: str) -> Answer | None:
        """Return the next answer to a path."""
        for key in (path, None):
            if answers := self._answers.get(key):
                number = min(self._next[key], len(answers) - 1)
                self._next[key] = number + 1
                return answers[number]
        return None

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._run, name=SERVER_THREAD, args=(connection,), daemon=True)
            with self._lock:
                self._connections.add(connection)
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket) -> None:
        current = connection
        try:
            with suppress(OSError):  # a client may close or reset the connection at any point
                if self._context is not None:
                    current = secure = self._secured(connection, self._context)
                    secure.do_handshake()
                self.serve(current)
        except Exception as error:  # noqa: BLE001  a function of the test failed: the test is to fail with it
            self._failures.append(error)
        finally:
            with self._lock:
                self._connections.discard(current)
            current.close()

    def _secured(self, connection: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        """Return the secure connection that takes the place of a connection."""
        with self._lock:
            secure = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            self._connections.discard(connection)
            self._connections.add(secure)
        return secure

    def _issued(self) -> ssl.SSLContext:
        """Return a context with a certificate of a new authority, and write ``ca_file``."""
        try:
            import trustme  # noqa: PLC0415  an optional dependency
        except ModuleNotFoundError:
            raise KitError(
                "a server with TLS needs the package `trustme`", hint='pip install "sideband-testing[tls]"'
            ) from None
        folder = Path(mkdtemp(prefix="sideband-testing-"))
        self._closing.callback(shutil.rmtree, folder, ignore_errors=True)
        authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        authority.cert_pem.write_to_path(self.ca_file)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        return context


def _request(file: BinaryIO, connection: socket.socket, client: tuple[Any, ...]) -> HttpRequest | None:
    try:
        return read_request(file, connection, client)
    except ValueError:  # it is not a request
        connection.sendall(response(b"", status=400, kind=""))
        return None


def _content(body: Any) -> tuple[bytes, str]:
    """Return the bytes of a body and the usual type of its content."""
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body).encode(), "application/json"
