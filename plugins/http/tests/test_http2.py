"""HTTP/2 over TLS: concurrent requests, and hostile servers."""

import socketserver
import threading
from contextlib import suppress

import anyio
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamEnded
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
)
from sideband_http import HttpError

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

OK = [(":status", "200"), ("content-type", "text/plain")]


class Handler(socketserver.BaseRequestHandler):
    """Reads requests and calls the server's script for each, which may send any frames."""

    def handle(self):
        with suppress(OSError):
            self.request.do_handshake()
            self.server.connections += 1
            self.speech = H2Connection(H2Configuration(client_side=False))
            self.speech.initiate_connection()
            self.send(self.speech.data_to_send())
            while data := self.request.recv(65_536):
                for event in self.speech.receive_data(data):
                    if isinstance(event, self.server.trigger):
                        self.server.requests += 1
                        self.server.script(self, event.stream_id)
                self.send(self.speech.data_to_send())

    def send(self, *frames):
        self.request.sendall(b"".join(one if isinstance(one, bytes) else one.serialize() for one in frames))

    def answer(self, stream, body=b"over http/2"):
        self.speech.send_headers(stream, OK)
        self.speech.send_data(stream, body, end_stream=True)
        self.send(self.speech.data_to_send())

    def flood(self, *frames):
        piece = b"".join(one.serialize() for one in frames)
        while not self.server.released.is_set():
            self.request.sendall(piece)
            self.server.sent += len(piece)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.connections = self.requests = self.sent = 0
        self.released = threading.Event()
        self.trigger = StreamEnded
        self.script = lambda handler, stream: handler.answer(stream)

    @property
    def url(self):
        return f"https://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request, client_address):
        pass


@pytest.fixture
def http2(server_context):
    server_context.set_alpn_protocols(["h2"])
    server = Server(server_context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def transport():
    return "auto"


@pytest.fixture
async def host(open_host, ca_file):
    async with open_host(ca_file=str(ca_file)) as one:
        yield one


async def outcome(host, server, op="http.get", **params):
    with anyio.fail_after(10):
        try:
            answer = await host.op(op, {"url": server.url, "timeout": 5, "max_bytes": 100_000, **params})
        except HttpError as error:
            return error.code
    assert answer["http_version"] == "HTTP/2"
    return answer


def block(*headers):
    return Encoder().encode(headers or OK)


def headers(stream, *pairs, flags=("END_HEADERS",)):
    return HeadersFrame(stream, block(*pairs), flags=list(flags))


def whole(stream, *pairs):
    return headers(stream, *pairs, flags=("END_HEADERS", "END_STREAM"))


@BOTH_BACKENDS
async def test_many_requests_share_one_connection(host, http2):
    bodies = []

    async def ask():
        bodies.append((await outcome(host, http2))["body"])

    await ask()
    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(ask)
    assert bodies == ["over http/2"] * 41
    assert (http2.requests, http2.connections) == (41, 1)


async def test_body_within_the_flow_control_window_is_sent(host, http2):
    assert (await outcome(host, http2, "http.post", body=b"x" * 60_000))["status"] == 200


@BOTH_BACKENDS
async def test_server_that_never_extends_the_window_is_a_timeout(host, http2):
    http2.trigger = RequestReceived
    http2.script = lambda *_: http2.released.wait(20)
    assert await outcome(host, http2, "http.post", body=b"x" * 1_000_000, timeout=0.2) == "http.timeout"


REFUSED = {
    "reset": lambda at, stream: at.send(RstStreamFrame(stream, error_code=2)),
    "reset-within": lambda at, stream: at.send(headers(stream), DataFrame(stream, b"x"), RstStreamFrame(stream)),
    "goaway": lambda at, _: at.send(GoAwayFrame(0, last_stream_id=0, error_code=0)),
    "odd-status": lambda at, stream: at.send(whole(stream, (":status", "abc"))),
    "low-status": lambda at, stream: at.send(whole(stream, (":status", "99"))),
    "upper-case": lambda at, stream: at.send(whole(stream, (":status", "200"), ("X-Upper", "1"))),
    "chunked": lambda at, stream: at.send(whole(stream, (":status", "200"), ("transfer-encoding", "chunked"))),
    "connection": lambda at, stream: at.send(whole(stream, (":status", "200"), ("connection", "close"))),
    "line-break": lambda at, stream: at.send(whole(stream, (":status", "200"), ("a", "b\r\nc: d"))),
    "nul": lambda at, stream: at.send(whole(stream, (":status", "200"), ("a", "b\0c"))),
    "wrong-length": lambda at, stream: at.send(
        headers(stream, (":status", "200"), ("content-length", "5")), DataFrame(stream, b"x", flags=["END_STREAM"])
    ),
    "data-first": lambda at, stream: at.send(DataFrame(stream, b"x")),
    "data-nowhere": lambda at, stream: at.send(DataFrame(stream + 100, b"x")),
    "push": lambda at, stream: at.send(PushPromiseFrame(stream, 2, block(), flags=["END_HEADERS"])),
    "hpack": lambda at, stream: at.send(HeadersFrame(stream, b"\xff\xff\xff\xff\xff\xff\xff", flags=["END_HEADERS"])),
    "cut-frame": lambda at, stream: (at.send(headers(stream).serialize()[:-1]), at.request.close()),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_protocol_violation_is_an_error_and_the_next_request_succeeds(host, http2, case):
    http2.script = REFUSED[case]
    assert await outcome(host, http2) == "http.protocol"
    http2.script = lambda handler, stream: handler.answer(stream)
    assert (await outcome(host, http2))["body"] == "over http/2"


FLOODS = {
    "continuation": lambda at, stream: (
        at.send(headers(stream, flags=[])),
        at.flood(ContinuationFrame(stream, block(("a", "b")))),
    ),
    "empty-continuation": lambda at, stream: (at.send(headers(stream, flags=[])), at.flood(ContinuationFrame(stream))),
    "data": lambda at, stream: (at.send(headers(stream)), at.flood(DataFrame(stream, b"x" * 10_000))),
    "trailers": lambda at, stream: (at.send(headers(stream)), at.flood(headers(stream, ("a", "b")))),
    "header": lambda at, stream: at.flood(headers(stream, (":status", "200"), ("a", "x" * 15_000))),
}


@pytest.mark.parametrize("case", FLOODS)
async def test_flood_is_aborted(host, http2, server, case):
    http2.script = FLOODS[case]
    assert await outcome(host, http2) in {"http.protocol", "http.too_large"}
    assert http2.sent < 30_000_000
    assert (await host.op("http.get", {"url": server.url("/bytes?count=2")}))["body"] == "xx"


IDLE = {
    "ping": lambda at, _: at.flood(PingFrame(0, b"12345678")),
    "settings": lambda at, _: at.flood(SettingsFrame(0)),
    "empty-data": lambda at, stream: (at.send(headers(stream)), at.flood(DataFrame(stream, b""))),
    "hints": lambda at, stream: at.flood(headers(stream, (":status", "103"))),
    "oversize": lambda at, _: at.send(b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * 100_000),
    "garbage": lambda at, _: at.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 100),
    "nothing": lambda at, _: at.server.released.wait(20),
}


@pytest.mark.parametrize("case", IDLE)
async def test_frames_without_content_are_a_timeout(host, http2, server, case):
    http2.script = IDLE[case]
    assert await outcome(host, http2, timeout=0.2) in {"http.timeout", "http.protocol"}
    assert (await host.op("http.get", {"url": server.url("/bytes?count=2")}))["body"] == "xx"


async def test_hpack_bomb_is_rejected(host, http2):
    def bomb(at, stream):
        encoder = Encoder()
        encoder.encode([("bomb", "x" * 4_000)])
        first = Encoder().encode([(":status", "200")]) + b"\x40\x04bomb\x7f" + b"\xa1\x1e" + b"x" * 4_000
        at.send(HeadersFrame(stream, first + b"\xbe" * 12_000, flags=["END_HEADERS", "END_STREAM"]))

    http2.script = bomb
    assert await outcome(host, http2) in {"http.protocol", "http.too_large"}


@BOTH_BACKENDS
async def test_reset_of_a_stream_does_not_affect_others(host, http2):
    def script(handler, stream):
        if http2.requests == 2:
            handler.send(RstStreamFrame(stream, error_code=2))
            handler.speech.reset_stream(stream)
            handler.speech.data_to_send()
        else:
            handler.answer(stream)

    http2.script = script
    await outcome(host, http2)
    answers = []

    async def ask():
        answers.append(await outcome(host, http2))

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(ask)
    assert sum(one == "http.protocol" for one in answers) == 1
    assert [one["body"] for one in answers if one != "http.protocol"] == ["over http/2"] * 5
    assert http2.connections == 1


async def test_goaway_makes_the_next_request_use_a_new_connection(host, http2):
    def script(handler, stream):
        handler.answer(stream)
        handler.send(GoAwayFrame(0, last_stream_id=stream, error_code=0))

    http2.script = script
    for _ in range(3):
        assert (await outcome(host, http2))["body"] == "over http/2"
    assert http2.connections == 3


@BOTH_BACKENDS
async def test_cancelled_handshake_leaves_no_socket(host, collect_garbage):
    """A socket left to the garbage collector emits a ResourceWarning, which fails this test or the next one."""

    greeted = anyio.Event()

    async def silent(stream):
        async with stream:
            await stream.receive()
            greeted.set()
            await anyio.sleep_forever()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, silent)
        url = f"https://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/"
        async with anyio.create_task_group() as asking:
            asking.start_soon(host.op, "http.get", {"url": url})
            await greeted.wait()
            asking.cancel_scope.cancel()
        collect_garbage()
        tasks.cancel_scope.cancel()
