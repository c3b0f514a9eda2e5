"""Loopback servers: one that echoes requests, and one that sends exactly the bytes of a test."""

import base64
import gzip
import json
import re
import socketserver
import threading
import zlib
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

TOKEN = "s3cr3t-token-value"
PATIENCE = 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self):
        selected = getattr(self.connection, "selected_alpn_protocol", lambda: None)
        if hasattr(self.connection, "do_handshake"):
            self.connection.do_handshake()
        if selected() == "h2":
            self.speak_http2()
        else:
            super().handle()

    def speak_http2(self):
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        self.connection.sendall(connection.data_to_send())
        while data := self.connection.recv(65_536):
            for event in connection.receive_data(data):
                if isinstance(event, StreamEnded):
                    connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/plain")])
                    connection.send_data(event.stream_id, b"over http/2", end_stream=True)
            self.connection.sendall(connection.data_to_send())

    def log_message(self, *_):
        pass

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def answer(self):
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("content-length", 0))
        self.body = self.rfile.read(length)
        self.seen = {
            "method": self.command,
            "path": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": base64.b64encode(self.body).decode(),
        }
        self.server.seen.append(self.seen)
        getattr(self, "at_" + parts.path.strip("/").replace("/", "_"), self.at_echo)()

    def send(self, body=b"", status=200, headers=(), kind="text/plain"):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def at_echo(self):
        self.send(json.dumps(self.seen).encode(), kind="application/json")

    def at_text(self):
        self.send("grüß".encode(self.query.get("as", "utf-8")), kind=self.query.get("kind", "text/plain"))

    def at_raw(self):
        self.send(base64.b64decode(self.query["body"]), kind=self.query.get("kind", "application/octet-stream"))

    def at_given(self):
        self.send(self.server.given, kind="application/problem+json")

    def at_status(self):
        code = int(self.query["code"])
        self.send(b"" if code in {204, 304} else b"body", status=code)

    def at_redirect(self):
        headers = [("Location", self.query["to"])]
        if "cookie" in self.query:
            headers.append(("Set-Cookie", self.query["cookie"]))
        self.send(b"elsewhere", status=int(self.query.get("code", 302)), headers=headers)

    def at_loop(self):
        self.send(status=302, headers=[("Location", "/loop")])

    def at_bytes(self):
        self.send(b"x" * int(self.query["count"]))

    def at_chunked(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(int(self.query["count"])):
            self.wfile.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def at_gzip(self):
        body = gzip.compress(b"\0" * int(self.query["count"]))
        self.send(body, headers=[("Content-Encoding", "gzip")])

    def at_deflate(self):
        self.send(zlib.compress(b"deflated"), headers=[("Content-Encoding", "deflate")])

    def at_badgzip(self):
        self.send(b"this is not gzip", headers=[("Content-Encoding", "gzip")])

    def at_brotli(self):
        self.send(b"\x8b\x02\x80hello", headers=[("Content-Encoding", "br")])

    def at_stored(self):
        stored = self.server.stored
        if self.command in {"GET", "HEAD"}:
            self.send(stored or b"", status=404 if stored is None else 200)
        else:
            self.server.stored = self.body if self.command == "PUT" else None
            self.send()

    def at_repeated(self):
        self.send(headers=[("X-Many", "1"), ("X-Many", "2"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")])

    def at_manyheaders(self):
        self.send(headers=[(f"X-{number}", "y" * 1000) for number in range(80)])

    def at_setcookie(self):
        self.send(headers=[("Set-Cookie", self.query["cookie"])])

    def at_slow(self):
        self.server.arrived.set()
        self.server.released.wait(PATIENCE)
        self.close_connection = True

    def at_slowbody(self):
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"12345")
        self.at_slow()

    def at_trickle(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            while not self.server.released.wait(0.02):
                self.wfile.write(b"1\r\nx\r\n")
        self.close_connection = True

    def at_together(self):
        self.server.barrier.wait(PATIENCE)
        self.send(b"together")

    def at_garbage(self):
        self.wfile.write(b"this is not http at all\r\n\r\n")
        self.close_connection = True

    def at_cut(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"only this")
        self.close_connection = True

    def at_flaky(self):
        self.server.counts[self.path] += 1
        if self.server.counts[self.path] <= int(self.query["failures"]):
            headers = [("Retry-After", self.query["after"])] if "after" in self.query else []
            self.send(status=int(self.query.get("code", 503)), headers=headers)
        else:
            self.send(b"at last")

    def at_hangup(self):
        self.server.counts[self.path] += 1
        if self.server.counts[self.path] > int(self.query["failures"]):
            self.send(b"at last")
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"
        self.seen = []
        self.counts = Counter()
        self.stored = None
        self.arrived = threading.Event()
        self.released = threading.Event()
        self.barrier = threading.Barrier(3)

    @property
    def origin(self):
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def url(self, path):
        return self.origin + path

    def handle_error(self, request, client_address):
        pass


class RawHandler(socketserver.BaseRequestHandler):
    def handle(self):
        with suppress(OSError):
            while self.server.script(self.request, self.receive()):
                pass

    def receive(self):
        message = b""
        while b"\r\n\r\n" not in message:
            message += self.read()
        head, _, body = message.partition(b"\r\n\r\n")
        found = re.search(rb"content-length: *([0-9]+)", head, re.IGNORECASE)
        while found and len(body) < int(found[1]):
            body += self.read()
        self.server.requests.append((head, body))
        return head

    def read(self):
        if not (data := self.request.recv(65_536)):
            raise ConnectionResetError
        return data


class RawServer(socketserver.ThreadingTCPServer):
    """Reads requests and calls ``script``, which may violate the protocol.

    ``script`` is called with the socket and the head of the request, and returns whether to keep the connection open.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), RawHandler)
        self.requests = []
        self.sent = 0
        self.released = threading.Event()
        self.barrier = threading.Barrier(1)
        self.script = lambda *_: False

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def url(self, path="/"):
        return self.origin + path

    def handle_error(self, request, client_address):
        pass

    def answers(self, *pieces):
        """Answer each request with these bytes, then close the connection."""

        def script(connection, head):
            for piece in pieces:
                connection.sendall(piece)
            return False

        self.script = script

    def floods(self, start, piece):
        """Answer with ``start``, then send ``piece`` repeatedly, without end."""

        def script(connection, head):
            connection.sendall(start)
            while not self.released.is_set():
                connection.sendall(piece)
                self.sent += len(piece)
            return False

        self.script = script

    def drips(self, start, piece):
        """Answer with ``start``, then send ``piece`` every 20 ms, which never exceeds a read timeout."""

        def script(connection, head):
            connection.sendall(start)
            while not self.released.wait(0.02):
                connection.sendall(piece)
            return False

        self.script = script
        return script


@contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.barrier.abort()
        server.shutdown()
        thread.join()
        server.server_close()
