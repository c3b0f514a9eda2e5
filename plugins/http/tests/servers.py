"""The servers of these tests: paths that only they need, and HTTP/2."""

import threading

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded
from sideband_testing import HttpServer

TOKEN = "s3cr3t-token-value"
PATIENCE = 20


class Server(HttpServer):
    """Answers as that of the testing kit, keeps what is sent to `/stored`, and lets requests to `/together` meet."""

    def __init__(self, **options):
        super().__init__(**options)
        self.stored = None
        self.barrier = threading.Barrier(3)
        self.answer(self._answer_stored, path="/stored")
        self.answer(self._answer_together, path="/together")

    def close(self):
        self.barrier.abort()
        super().close()

    def serve(self, connection):
        if getattr(connection, "selected_alpn_protocol", lambda: None)() == "h2":
            self.serve_http2(connection)
        else:
            super().serve(connection)

    def serve_http2(self, connection):
        protocol = H2Connection(H2Configuration(client_side=False))
        protocol.initiate_connection()
        connection.sendall(protocol.data_to_send())
        while data := connection.recv(65_536):
            for event in protocol.receive_data(data):
                if isinstance(event, StreamEnded):
                    protocol.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/plain")])
                    protocol.send_data(event.stream_id, b"over http/2", end_stream=True)
            connection.sendall(protocol.data_to_send())

    def _answer_stored(self, exchange):
        if exchange.request.method in {"GET", "HEAD"}:
            return exchange.respond(self.stored or b"", status=404 if self.stored is None else 200)
        self.stored = exchange.request.body if exchange.request.method == "PUT" else None
        return exchange.respond()

    def _answer_together(self, exchange):
        self.barrier.wait(PATIENCE)
        return exchange.respond(b"together")
