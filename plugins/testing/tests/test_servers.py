"""The fixture `http_server`: what each route and answer sends, seen by a client of the standard library."""

import http.client
import json
import socket
import ssl

import pytest
from sideband_testing import HttpServer, KitError


@pytest.fixture
def server():
    with HttpServer() as one:
        yield one


def ask(server, path, method="GET", body=None, *, headers=(), connection=None):
    one = connection or http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        one.request(method, path, body=body, headers=dict(headers))
        answer = one.getresponse()
        return answer, answer.read()
    finally:
        if connection is None:
            one.close()


def test_unknown_path_echoes_the_request(server):
    answer, body = ask(server, "/any?q=1", "POST", b"text", headers={"X-Own": "yes"})
    seen = json.loads(body)
    assert (answer.status, seen["method"], seen["path"], seen["body"]) == (200, "POST", "/any?q=1", "dGV4dA==")
    (request,) = server.requests_to("/any")
    assert (request.headers["x-own"], request.body, request.query) == ("yes", b"text", {"q": "1"})


@pytest.mark.parametrize(
    ("path", "status", "length"),
    [
        ("/text?as=latin-1", 200, 4),
        ("/raw?body=AQI=", 200, 2),
        ("/status?code=418", 418, 4),
        ("/redirect?to=/text&code=307", 307, 9),
        ("/loop", 302, 0),
        ("/bytes?count=1000", 200, 1000),
        ("/chunked?count=3", 200, 3072),
        ("/gzip?count=100000", 200, None),
        ("/deflate", 200, None),
        ("/badgzip", 200, 16),
        ("/brotli", 200, 8),
        ("/repeated", 200, 0),
        ("/manyheaders", 200, 0),
        ("/setcookie?cookie=a=1", 200, 0),
    ],
)
def test_friendly_routes_answer_completely(server, path, status, length):
    answer, body = ask(server, path)
    assert answer.status == status
    assert length is None or len(body) == length


def test_hostile_routes_break_off(server):
    with pytest.raises(http.client.IncompleteRead):
        ask(server, "/cut")
    with pytest.raises(http.client.BadStatusLine):
        ask(server, "/garbage")
    for path in ("/slow", "/slowbody"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            assert server.arrived.wait(10)
        assert server.closed.wait(10)
        server.reset()


def test_flaky_routes_succeed_after_failures(server):
    paths = ["/flaky?failures=2&after=7"] * 3
    assert [ask(server, path)[0].status for path in paths] == [503, 503, 200]
    assert ask(server, "/flaky?failures=1&after=7&code=429")[0].headers["Retry-After"] == "7"
    with pytest.raises(http.client.RemoteDisconnected):
        ask(server, "/hangup?failures=1")
    assert ask(server, "/hangup?failures=1")[1] == b"at last"


def test_answer_replaces_or_follows_the_one_before_and_the_last_is_repeated(server):
    server.reply("replaced")
    server.reply("one")
    server.reply({"two": 2}, status=201, headers=[("X-Own", "1")], chunked=True, then=True)
    server.reply(b"of one path", path="/own")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    bodies = [ask(server, "/any", connection=connection)[1] for _ in range(3)]
    assert bodies == [b"one", b'{"two": 2}', b'{"two": 2}']
    assert ask(server, "/own", connection=connection)[1] == b"of one path"
    assert ask(server, "/own", "HEAD", connection=connection)[0].headers["Content-Length"] == "11"
    server.reply("three", then=True)
    assert [ask(server, "/any", connection=connection)[1] for _ in range(2)] == [b"three"] * 2
    assert len({request.client for request in server.requests}) == 1
    connection.close()
    server.reset()
    assert server.requests == []
    assert ask(server, "/text")[1] == "grüß".encode()


def test_exact_bytes_and_functions_are_sent(server):
    server.send(b"HTTP/1.1 200 OK\r\n", b"Content-Length: 5\r\n\r\nhello")
    server.answer(lambda exchange: exchange.respond(exchange.request.head.split()[1]), path="/own")
    assert ask(server, "/any")[1] == b"hello"
    assert ask(server, "/own")[1] == b"/own"


@pytest.mark.parametrize("every", [0.0, 0.001])
def test_flood_ends_when_the_client_closes(server, every):
    server.flood(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100, every=every)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with connection.makefile("rb") as file:
            assert file.read(1000).endswith(b"x" * 900)


def test_chunked_bodies_and_expect_are_read(server):
    chunks = b"5\r\nhello\r\n6;note=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + chunks)
        assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.recv(1000)
    assert server.requests[0].body == b"hello world"


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"nonsense\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"\x16\x03 of a handshake\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"GET / HTTP/1.1\r\n", b""),
        (b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf", b""),
    ],
)
def test_what_is_not_a_request_is_refused_and_ends_the_connection(server, sent, answer):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(sent)
        if not answer:
            connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as file:
            assert file.readline() == answer
            file.read()
    assert server.requests == []


def test_server_with_tls_has_a_certificate_of_its_authority(server):
    secure = server.another(tls=True)
    context = ssl.create_default_context(cafile=secure.ca_file)
    connection = http.client.HTTPSConnection("127.0.0.1", secure.port, timeout=10, context=context)
    assert ask(secure, "/text", connection=connection)[1] == "grüß".encode()
    connection.close()
    assert secure.origin.startswith("https://127.0.0.1:")
    server.close()
    assert not secure.ca_file.exists()


def test_missing_package_for_tls_is_reported_with_the_remedy(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "trustme", None)
    with pytest.raises(KitError, match=r'pip install "sideband-testing\[tls\]"'):
        HttpServer(tls=True)


def test_closing_ends_connections_that_hang_in_a_handshake_or_an_answer():
    with HttpServer() as server:
        secure = server.another(tls=True)
        clients = [socket.create_connection(("127.0.0.1", one.port), timeout=10) for one in (server, secure)]
        server.hold(b"HTTP/1.1 200 OK\r\n")
        clients[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert server.arrived.wait(10)
    for client in clients:
        with client:
            assert client.recv(100) in (b"HTTP/1.1 200 OK\r\n", b"")


def test_fixture_is_started_and_closed_and_reports_failing_answers(run_tests):
    result = run_tests(
        """
        from urllib.request import urlopen

        def test_it(http_server):
            http_server.reply({"stars": 12}, path="/repos/sideband")
            with urlopen(http_server.url("/repos/sideband"), timeout=10) as answer:
                assert answer.read() == b'{"stars": 12}'
            assert http_server.requests[0].method == "GET"

        def test_failing_answer(http_server):
            http_server.answer(lambda exchange: 1 / 0)
            urlopen(http_server.url("/"), timeout=10)
        """
    )
    result.assert_outcomes(passed=1, failed=1, errors=1)
    result.stdout.fnmatch_lines(["E *ZeroDivisionError: division by zero"])
