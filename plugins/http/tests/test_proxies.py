"""Requests through a loopback proxy that records what it is asked for."""

import re
import socket
import socketserver
import threading
from base64 import b64encode
from contextlib import contextmanager, suppress
from ipaddress import ip_address

import pytest
import sideband_http._addresses._resolving
import sideband_http._exchange._sending
import sideband_http._transport._proxies
from sideband.ops import Credential, OpDenied, OpUnavailable
from sideband_http import AddressDenied, HttpTimeout, ProxyFailed
from sideband_http._addresses._classes import AddressClass
from sideband_http._addresses._url import parse_url
from sideband_http._transport._proxies import Bypass, ProxyRules

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

NAME = "service.test"


class Proxy(socketserver.ThreadingTCPServer):
    """Opens tunnels to `leads_to`, whatever address is requested."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.scheme = "http"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"
        self.requests = []
        self.leads_to = None
        self.answer = b"HTTP/1.1 200 Connection established\r\n\r\n"
        self.released = threading.Event()

    @property
    def origin(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_):
        pass


class Tunnel(socketserver.BaseRequestHandler):
    def handle(self):
        if hasattr(self.request, "do_handshake"):
            self.request.do_handshake()
        head = b""
        while b"\r\n\r\n" not in head:
            if not (piece := self.request.recv(65_536)):
                return
            head += piece
        self.server.requests.append(head.decode())
        if self.server.answer is None:
            self.server.released.wait(20)
            return
        self.request.sendall(self.server.answer)
        if self.server.answer.startswith(b"HTTP/1.1 200") and self.server.leads_to:
            with socket.create_connection(self.server.leads_to) as there:
                back = threading.Thread(target=pump, args=(there, self.request))
                back.start()
                pump(self.request, there)
                back.join()


def pump(source, sink):
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def running(proxy):
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.released.set()
        proxy.shutdown()
        thread.join()
        proxy.server_close()


@pytest.fixture
def proxy():
    with running(Proxy()) as one:
        yield one


@pytest.fixture
def names(monkeypatch):
    """Return the addresses of names that end in `.test`; tests fill it."""
    known = {}
    system = socket.getaddrinfo

    def look_up(host, *args, **kwargs):
        if isinstance(host, str) and host.endswith(".test"):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in known[host]]
        return system(host, *args, **kwargs)

    monkeypatch.setattr(sideband_http._addresses._resolving.socket, "getaddrinfo", look_up)
    return known


async def test_tunnel_is_requested_to_the_checked_address(open_host, proxy, server, names):
    names[NAME] = ["8.8.8.8"]
    proxy.leads_to = ("127.0.0.1", server.port)
    async with open_host(proxy=proxy.origin) as host:
        answer = await host.op("http.get", {"url": f"http://{NAME}/echo"}, grants=[f"http:host={NAME}"])
    assert answer["status"] == 200
    assert proxy.requests == ["CONNECT 8.8.8.8:80 HTTP/1.1\r\nHost: 8.8.8.8:80\r\n\r\n"]
    assert server.requests[0].headers["host"] == NAME
    assert server.requests[0].path == "/echo"


async def test_proxy_does_not_see_tls_content(open_host, proxy, tls_server, ca_file, monkeypatch):
    # The test certificate is valid for a loopback address, which would bypass the proxy.
    monkeypatch.setattr(sideband_http._transport._proxies, "_NEVER_PROXIED", frozenset())
    proxy.leads_to = ("127.0.0.1", tls_server.port)
    async with open_host(proxy=proxy.origin, ca_file=str(ca_file)) as host:
        answer = await host.op("http.get", {"url": tls_server.url("/echo?q=private"), "headers": {"X-A": "private"}})
    assert answer["status"] == 200
    assert "private" not in proxy.requests[0]


@BOTH_BACKENDS
async def test_https_proxy_is_supported(open_host, server, names, server_context, ca_file):
    names[NAME] = ["8.8.8.8"]
    with running(Proxy(server_context)) as proxy:
        proxy.leads_to = ("127.0.0.1", server.port)
        async with open_host(proxy=proxy.origin, ca_file=str(ca_file)) as host:
            assert (await host.op("http.get", {"url": f"http://{NAME}/echo"}))["status"] == 200
        assert proxy.requests[0].startswith("CONNECT 8.8.8.8:80 ")


async def test_proxy_with_an_untrusted_certificate_is_not_used(open_host, server, names, server_context):
    names[NAME] = ["8.8.8.8"]
    with running(Proxy(server_context)) as proxy:
        async with open_host(proxy=proxy.origin) as host:
            with pytest.raises(sideband_http.HttpError):
                await host.op("http.get", {"url": f"http://{NAME}/"})
        assert proxy.requests == []


async def test_proxy_is_not_asked_for_an_address_without_grant(open_host, proxy, names):
    names[NAME] = ["10.0.0.1"]
    async with open_host(proxy=proxy.origin) as host:
        with pytest.raises(AddressDenied):
            await host.op("http.get", {"url": f"http://{NAME}/"}, grants=[f"http:host={NAME}"])
    assert proxy.requests == []


async def test_loopback_address_bypasses_the_proxy(open_host, proxy, server):
    async with open_host(proxy=proxy.origin) as host:
        answer = await host.op("http.get", {"url": server.url("/echo")})
    assert (answer["status"], proxy.requests) == (200, [])


@pytest.mark.parametrize(
    ("scheme", "config"),
    [("http", {"http": True}), ("https", {"https": True}), ("http", {"http": True, "https": True})],
)
async def test_each_scheme_may_have_its_own_proxy(open_host, proxy, names, scheme, config):
    names[NAME] = ["8.8.8.8"]
    proxy.answer = b"HTTP/1.1 403 no\r\n\r\n"
    async with open_host(proxy=dict.fromkeys(config, proxy.origin)) as host:
        with pytest.raises(ProxyFailed):
            await host.op("http.get", {"url": f"{scheme}://{NAME}/"})
    assert len(proxy.requests) == 1


async def test_proxies_from_the_environment_are_ignored(host, server, proxy, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.origin)
        monkeypatch.setenv(name.upper(), proxy.origin)
    await host.op("http.get", {"url": server.url("/echo")})
    assert proxy.requests == []


async def test_proxy_resolves_names_if_configured(open_host, proxy, server, names):
    proxy.leads_to = ("127.0.0.1", server.port)
    async with open_host(proxy=proxy.origin, proxy_resolves=True) as host:
        answer = await host.op("http.get", {"url": f"http://{NAME}:81/echo"}, grants=[f"http:host={NAME}"])
        with pytest.raises(OpDenied, match="network=public"):
            await host.op("http.get", {"url": f"http://{NAME}/"}, grants=[f"http:host={NAME},network=private"])
    assert answer["status"] == 200
    assert proxy.requests == [f"CONNECT {NAME}:81 HTTP/1.1\r\nHost: {NAME}:81\r\n\r\n"]


async def test_proxy_that_resolves_names_is_not_asked_for_a_private_address_without_grant(open_host, proxy):
    async with open_host(proxy=proxy.origin, proxy_resolves=True) as host:
        with pytest.raises(OpDenied):
            await host.op("http.get", {"url": "http://10.0.0.1/"}, grants=["http"])
    assert proxy.requests == []


async def test_proxy_that_resolves_names_is_asked_for_granted_addresses(open_host, proxy, server):
    proxy.leads_to = ("127.0.0.1", server.port)
    async with open_host(proxy=proxy.origin, proxy_resolves=True) as host:
        assert (await host.op("http.get", {"url": "http://10.0.0.1/echo"}, grants=["http:host=10.0.0.1"]))["ok"]
        local = server.url("/echo").replace("127.0.0.1", "localhost")
        assert (await host.op("http.get", {"url": local}, grants=["http:host=localhost"]))["ok"]
    assert [one.split()[1] for one in proxy.requests] == ["10.0.0.1:80"]


async def test_proxy_credential_is_sent_to_the_proxy_only(open_host, proxy, server, names, credentials):
    names[NAME] = ["8.8.8.8"]
    proxy.leads_to = ("127.0.0.1", server.port)
    async with open_host(proxy=proxy.origin, proxy_auth="bearer") as host:
        await host.op("http.get", {"url": f"http://{NAME}/echo"}, grants=["http"])
    expected = b64encode(b"s3cr3t-token-value").decode()
    assert f"\r\nProxy-Authorization: Basic {expected}\r\n" in proxy.requests[0]
    assert credentials.resolved == [("bearer", proxy.origin)]
    assert "proxy-authorization" not in server.requests[0].headers


async def test_proxy_credential_cannot_inject_a_header(open_host, proxy, names, credentials):
    names[NAME] = ["8.8.8.8"]

    async def resolve(handle, audience, ctx):
        return Credential(handle, "x", {"Proxy-Authorization": "Basic eA==\r\nX-Evil: 1"})

    credentials.resolve = resolve
    async with open_host(proxy=proxy.origin, proxy_auth="bearer") as host:
        with pytest.raises(ProxyFailed, match="not a valid header value"):
            await host.op("http.get", {"url": f"http://{NAME}/"})
    assert proxy.requests == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"HTTP/1.1 407 no\r\n\r\n", "proxy_auth"),
        (b"HTTP/1.1 403 no\r\n\r\n", "status 403"),
        (b"HTTP/1.1 302 there\r\nLocation: http://127.0.0.1/\r\n\r\n", "status 302"),
        (b"HTTP/1.1 200 ok\r\n\r\nHTTP/1.1 200 ok\r\nContent-Length: 2\r\n\r\nhi", "unexpected data"),
        (b"garbage\r\n\r\n", "invalid response"),
        (b"HTTP/1.1 200 ok\r\n", "invalid response"),
        (b"HTTP/1.1 200 ok\r\n" + b"X-A: y\r\n" * 5_000 + b"\r\n", "invalid response"),
        (b"HTTP/1.1 2000 ok\r\n\r\n", "invalid response"),
        (b"", "invalid response"),
    ],
)
async def test_refusal_or_invalid_response_of_a_proxy_is_a_proxy_error(open_host, proxy, names, answer, problem):
    names[NAME] = ["8.8.8.8"]
    proxy.answer = answer
    async with open_host(proxy=proxy.origin) as host:
        with pytest.raises(ProxyFailed, match=problem) as caught:
            await host.op("http.get", {"url": f"http://{NAME}/", "timeout": 10})
    assert (caught.value.code, caught.value.nothing_happened) == ("http.proxy", True)
    assert "[plugins.http]" in caught.value.hint


@BOTH_BACKENDS
async def test_silent_proxy_is_a_timeout(open_host, proxy, names):
    names[NAME] = ["8.8.8.8"]
    proxy.answer = None
    async with open_host(proxy=proxy.origin) as host:
        with pytest.raises(HttpTimeout):
            await host.op("http.get", {"url": f"http://{NAME}/", "timeout": 0.3})


async def test_silent_proxy_is_asked_for_the_next_address(open_host, proxy, names, monkeypatch):
    monkeypatch.setattr(sideband_http._exchange._sending, "_NEXT_PEER_SECONDS", 0.05)
    names[NAME] = ["8.8.8.8", "8.8.4.4"]
    proxy.answer = None
    async with open_host(proxy=proxy.origin) as host:
        with pytest.raises(HttpTimeout):
            await host.op("http.get", {"url": f"http://{NAME}/", "timeout": 0.3})
    assert len(proxy.requests) == 2


async def test_unreachable_proxy_is_a_proxy_error(open_host, names):
    names[NAME] = ["8.8.8.8"]
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    for where in (f"127.0.0.1:{port}", "proxy.invalid:3128"):
        async with open_host(proxy=f"http://{where}") as host:
            with pytest.raises(ProxyFailed, match=r"cannot (connect to|resolve)"):
                await host.op("http.get", {"url": f"http://{NAME}/"})


async def test_next_address_is_requested_if_the_proxy_cannot_reach_the_first(open_host, proxy, server, names):
    names[NAME] = ["8.8.8.8", "8.8.4.4"]
    proxy.answer = b"HTTP/1.1 502 no\r\n\r\n"
    async with open_host(proxy=proxy.origin) as host:
        with pytest.raises(ProxyFailed):
            await host.op("http.get", {"url": f"http://{NAME}/"})
    assert [re.match(r"CONNECT (\S+)", one)[1] for one in proxy.requests] == ["8.8.8.8:80", "8.8.4.4:80"]


@pytest.mark.parametrize("first", [True, False])
async def test_proxied_and_direct_requests_coexist(open_host, proxy, server, names, first):
    names[NAME] = ["8.8.8.8"]
    proxy.leads_to = ("127.0.0.1", server.port)
    urls = [f"http://{NAME}/echo", server.url("/echo")]
    async with open_host(proxy=proxy.origin) as host:
        for url in urls if first else urls[::-1]:
            assert (await host.op("http.get", {"url": url}))["status"] == 200
    assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("bypass", "host", "address", "covered"),
    [
        ("*", "example.org", "8.8.8.8", True),
        ("example.org", "example.org", "8.8.8.8", True),
        ("example.org", "api.example.org", "8.8.8.8", False),
        ("*.example.org", "api.example.org", "8.8.8.8", True),
        ("*.example.org", "a.b.example.org", "8.8.8.8", True),
        ("*.example.org", "example.org", "8.8.8.8", False),
        ("*.example.org", "notexample.org", "8.8.8.8", False),
        ("10.0.0.0/8", "intranet", "10.1.2.3", True),
        ("10.0.0.0/8", "intranet", "11.1.2.3", False),
        ("10.0.0.0/8", "intranet", None, False),
        ("fd00::/8", "intranet", "fd00::1", True),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1", True),
    ],
)
def test_bypass_rule_matches(bypass, host, address, covered):
    assert Bypass(bypass).covers(host, ip_address(address) if address else None) is covered


def test_bypassed_host_has_no_proxy():
    rules = ProxyRules({"http": parse_url("http://proxy:1")}, (Bypass("*.corp"),), resolves=True)
    assert rules.for_name(parse_url("http://x.corp/")) is None
    assert rules.for_name(parse_url("http://x.org/")).host == "proxy"
    assert rules.for_address(parse_url("http://x.corp/"), ip_address("8.8.8.8")) is None
    assert rules.for_address(parse_url("https://x.org/"), ip_address("8.8.8.8")) is None
    assert AddressClass.METADATA in sideband_http._transport._proxies._NEVER_PROXIED


@pytest.mark.parametrize(
    "config",
    [
        {"proxy": "http://user:hunter22@proxy:3128"},
        {"proxy": {"https": "http://user:hunter22@proxy:3128"}},
        {"proxy": "socks5://proxy:1080"},
        {"proxy": "proxy:3128"},
        {"proxy": "http://proxy:3128/path"},
        {"proxy": {"ftp": "http://proxy:3128"}},
        {"no_proxy": ["Example.org"]},
        {"no_proxy": ["a b"]},
    ],
    ids=str,
)
async def test_invalid_proxy_is_a_configuration_error(open_host, config):
    async with open_host(**config) as host:
        with pytest.raises(OpUnavailable, match="proxy") as caught:
            await host.op("http.get", {"url": "http://127.0.0.1:9/"})
    assert caught.value.exit_code == 5
    assert "hunter22" not in str(caught.value)
