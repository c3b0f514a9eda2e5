"""Each request and each redirect resolves its host once, checks the addresses and connects to one of them."""

import socket
from ipaddress import ip_address

import anyio
import pytest
import sideband_http._addresses._resolving
import sideband_http._transport._connections
from sideband.ops import EffectUnknown, OpDenied
from sideband_http import AddressDenied, AddressRefused, ConnectFailed, HttpScope, TlsFailed
from sideband_http._transport._connections import HttpConnections
from sideband_http._transport._interface import Peer
from sideband_http._transport._trust import Trust

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

NAME = "service.test"
GRANTED = f"http:host={NAME}"


class Names:
    """A fake resolver with a list of addresses by name, or a function called at each lookup."""

    def __init__(self):
        self.known = {}
        self.lookups = []

    def __call__(self, host):
        self.lookups.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answer = self.known[host]
        return [address_info(one) for one in (answer() if callable(answer) else answer)]


def address_info(address):
    text, _, zone = address.partition("%")
    if ":" in text:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (text, 0, 0, int(zone or 0)))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (text, 0))


@pytest.fixture
def names(monkeypatch):
    made = Names()
    monkeypatch.setattr(sideband_http._addresses._resolving.socket, "getaddrinfo", patched(made))
    return made


def patched(names):
    system = socket.getaddrinfo

    def look_up(host, *args, **kwargs):
        if isinstance(host, str) and host.endswith(".test"):
            return names(host)
        return system(host, *args, **kwargs)

    return look_up


@pytest.fixture
def get(host, server):
    """Return a function that sends a GET to the server by a name."""

    async def ask(grant, path="/echo", name=NAME, **params):
        url = f"http://{name}:{server.port}{path}"
        return await host.op("http.get", {"url": url, **params}, grants=None if grant is None else [grant])

    return ask


@pytest.mark.parametrize(
    ("capability", "networks"),
    [
        ({}, ("public",)),
        ({"host": ("api.github.com",)}, ("public",)),
        ({"host": ("127.0.0.1",)}, ("loopback",)),
        ({"host": ("localhost",)}, ("loopback",)),
        ({"host": ("api.localhost",)}, ("loopback",)),
        ({"host": ("10.0.0.1", "::1")}, ("loopback", "private")),
        ({"host": ("169.254.169.254",)}, ("metadata",)),
        ({"host": ("8.8.8.8",)}, ("public",)),
        ({"host": ("127.0.0.1", "api.github.com")}, ("public",)),
        ({"host": ("127.0.0.1*",)}, ("public",)),
        ({"host": ("localhost*",)}, ("public",)),
        ({"host": ("*",)}, ("public",)),
        ({"host": ("notlocalhost",)}, ("public",)),
        ({"host": ("fe80::1%eth0",)}, ("public",)),
    ],
    ids=str,
)
def test_capability_without_network_covers_public_or_the_classes_of_its_addresses(capability, networks):
    assert HttpScope.complete(capability) == {"network": networks}


async def test_name_may_resolve_only_to_public_addresses_by_default(get, names, server):
    names.known[NAME] = ["127.0.0.1"]
    with pytest.raises(AddressDenied) as caught:
        await get(GRANTED)
    assert (caught.value.code, caught.value.exit_code, caught.value.nothing_happened) == ("http.network", 3, True)
    assert f"`{NAME}` resolves to a loopback address" in caught.value.message
    assert f"--grant 'http:host={NAME},method=GET,network=loopback,path=/echo,port=" in caught.value.hint
    assert server.requests == []


async def test_refused_request_releases_its_key(host, server, names):
    names.known[NAME] = ["127.0.0.1"]
    params = {"url": f"http://{NAME}:{server.port}/echo"}
    with pytest.raises(AddressDenied):
        await host.op("http.post", params, key="one", grants=[GRANTED])
    answer = await host.op("http.post", params, key="one", grants=[f"{GRANTED},network=loopback"])
    assert (answer["status"], len(server.requests)) == (200, 1)


@pytest.mark.parametrize("path", ["/status?code=503", "/hangup?failures=9"])
async def test_refused_retry_does_not_claim_that_nothing_happened(host, server, names, monkeypatch, path):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_CACHE_SECONDS", -1.0)
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    names.known[NAME] = lambda: next(answers)
    params = {"url": f"http://{NAME}:{server.port}{path}", "retry": 1, "retry_delay": 0}
    with pytest.raises(AddressDenied) as caught:
        await host.op("http.get", params, grants=[f"{GRANTED},network=loopback"])
    assert (caught.value.nothing_happened, len(server.requests)) == (False, 1)


async def test_refused_redirect_does_not_release_the_key(host, server, names):
    names.known[NAME] = ["127.0.0.1"]
    url = f"http://{NAME}:{server.port}/redirect"
    params = {"url": url, "params": {"to": "http://10.0.0.1/"}}
    for error in (OpDenied, EffectUnknown):
        with pytest.raises(error):
            await host.op("http.post", params, key="one", grants=[f"{GRANTED},network=loopback"])
    assert len(server.requests) == 1


async def test_error_does_not_reveal_the_address(get, names):
    names.known[NAME] = ["10.11.12.13"]
    with pytest.raises(AddressDenied) as caught:
        await get(GRANTED)
    assert "10.11" not in str(caught.value) + caught.value.hint


@BOTH_BACKENDS
async def test_name_may_resolve_to_a_granted_network(get, names, server):
    names.known[NAME] = ["127.0.0.1"]
    answer = await get(f"{GRANTED},network=loopback")
    assert answer["status"] == 200
    assert server.requests[0].headers["host"] == f"{NAME}:{server.port}"


async def test_grant_for_other_networks_does_not_cover_loopback(get, names, server):
    names.known[NAME] = ["127.0.0.1"]
    with pytest.raises(AddressDenied):
        await get(f"{GRANTED},network=private|public|link-local|metadata")
    assert server.requests == []


async def test_host_op_without_grants_reaches_loopback(get, names):
    names.known[NAME] = ["127.0.0.1"]
    assert (await get(None))["status"] == 200


async def test_every_address_of_a_name_must_be_granted(get, names, server):
    names.known[NAME] = ["127.0.0.1", "8.8.8.8"]
    with pytest.raises(AddressDenied, match="public"):
        await get(f"{GRANTED},network=loopback")
    names.known["other.test"] = ["8.8.8.8", "127.0.0.1"]
    with pytest.raises(AddressDenied, match="loopback"):
        await get("http:host=other.test", name="other.test")
    assert server.requests == []


async def test_multicast_and_reserved_addresses_are_always_refused(get, host, names, code_of):
    codes = {}
    for number, address in enumerate(["224.0.0.1", "0.0.0.0", "255.255.255.255", "ff02::1", "::", "192.0.2.1"]):
        name = f"n{number}.test"
        names.known[name] = [address]
        codes[f"a name for {address}"] = await code_of(get(None, name=name))
        url = f"http://[{address}]/" if ":" in address else f"http://{address}/"
        grants = ["http:network=reserved|multicast"]
        codes[address] = await code_of(host.op("http.get", {"url": url}, grants=grants))
    assert codes == dict.fromkeys(codes, "http.address")


async def test_address_that_is_always_refused_was_not_reached(get, names):
    names.known[NAME] = ["224.0.0.1"]
    with pytest.raises(AddressRefused) as caught:
        await get(None)
    assert caught.value.nothing_happened


NOT_PUBLIC = [
    "::ffff:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "2002:7f00:1::1",
    "::1",
    "fe80::5efe:127.0.0.1",
    "::ffff:10.0.0.1",
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "fd00:ec2::254",
    "10.0.0.1",
    "100.64.0.1",
    "fc00::1",
    "fe80::1",
]


async def test_name_that_resolves_to_a_non_public_address_is_refused(get, names, code_of):
    codes = {}
    for number, address in enumerate(NOT_PUBLIC):
        name = f"n{number}.test"
        names.known[name] = [address]
        codes[address] = await code_of(get(f"http:host={name}", name=name))
    assert codes == dict.fromkeys(NOT_PUBLIC, "http.network")


NOT_PUBLIC_HOSTS = [
    "127.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "localhost",
    "LOCALHOST.",
    "x.localhost",
    "169.254.169.254",
    "10.0.0.1",
    "[fd00:ec2::254]",
    "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "127.0.0.1.",
]


async def test_non_public_address_requires_a_grant_that_names_it(host, server, code_of):
    codes = {}
    for name in NOT_PUBLIC_HOSTS:
        for grant in ("http", "http:scheme=http", "http:host=*", "http:host=1*|l*|x*|:*|6*|f*"):
            request = host.op("http.get", {"url": f"http://{name}:{server.port}/"}, grants=[grant])
            codes[name, grant] = await code_of(request)
    assert codes == dict.fromkeys(codes, "op.denied")
    assert server.requests == []


async def test_localhost_is_not_looked_up(host, server, names):
    url = server.url("/echo").replace("127.0.0.1", "localhost")
    names.known["localhost"] = ["8.8.8.8"]
    assert (await host.op("http.get", {"url": url}, grants=["http:host=localhost"]))["status"] == 200
    assert names.lookups == []


async def test_name_without_grant_is_not_looked_up(get, names):
    names.known[NAME] = ["127.0.0.1"]
    for grant in ("http:host=other.test", f"{GRANTED},method=POST", f"{GRANTED},path=/x,network=loopback"):
        with pytest.raises(OpDenied):
            await get(grant)
    assert names.lookups == []


async def test_name_without_grant_is_not_looked_up_in_a_session(host, names):
    steps = [("http.session_open", {}), ("http.session_request", {"session_id": "$session", "url": f"http://{NAME}/"})]
    answers = await host.op("flow.run", {"steps": steps}, grants=["http:host=other.test"])
    assert answers[1]["error"] == "op.denied"
    assert names.lookups == []


async def test_name_is_looked_up_once_per_request(get, names, server):
    answers = iter([["127.0.0.1"], ["8.8.8.8"], ["8.8.8.8"]])
    names.known[NAME] = lambda: next(answers)
    assert (await get(f"{GRANTED},network=loopback"))["status"] == 200
    assert names.lookups == [NAME]


async def test_changed_address_is_checked_again(open_host, names, server, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_CACHE_SECONDS", -1.0)
    answers = iter([["127.0.0.1"], ["8.8.8.8"], ["127.0.0.1"]])
    names.known[NAME] = lambda: next(answers)
    url = f"http://{NAME}:{server.port}/echo"
    async with open_host() as host:
        loopback, public = [f"{GRANTED},network=loopback"], [GRANTED]
        assert (await host.op("http.get", {"url": url}, grants=loopback))["status"] == 200
        with pytest.raises(AddressDenied, match="public"):
            await host.op("http.get", {"url": url}, grants=loopback)
        with pytest.raises(AddressDenied, match="loopback"):
            await host.op("http.get", {"url": url}, grants=public)
    assert len(server.requests) == 1


@BOTH_BACKENDS
async def test_open_connection_is_used_only_for_its_peer(open_host, names, server, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_CACHE_SECONDS", -1.0)
    names.known[NAME] = ["127.0.0.1"]
    url = f"http://{NAME}:{server.port}/echo"
    async with open_host() as host:
        for _ in range(2):
            await host.op("http.get", {"url": url}, grants=[f"{GRANTED},network=loopback"])
        with pytest.raises(AddressDenied):
            await host.op("http.get", {"url": url}, grants=[GRANTED])
        names.known[NAME] = ["127.0.0.2"]
        with pytest.raises(ConnectFailed):
            await host.op("http.get", {"url": url}, grants=[f"{GRANTED},network=loopback"])
    assert len(server.requests) == 2


CHECKED_LOCATIONS = [
    "http://127.0.0.1:{}/echo",
    "http://localhost:{}/",
    "http://[::1]:{}/",
    "http://[::ffff:7f00:1]:{}/",
    "//127.0.0.1:{}/",
    "http://service.test:{}/echo",
    "http://internal.test:{}/",
    "http://INTERNAL.test.:{}/",
]


async def test_redirect_is_resolved_and_checked(host, server, names):
    names.known["start.test"] = ["127.0.0.1"]
    names.known["internal.test"] = names.known[NAME] = ["10.0.0.1"]
    url = f"http://start.test:{server.port}/redirect"
    grants = ["http:host=start.test,network=loopback", "http:host=service.test", "http"]
    for location in CHECKED_LOCATIONS:
        params = {"to": location.format(server.port)}
        with pytest.raises(OpDenied) as caught:
            await host.op("http.get", {"url": url, "params": params}, grants=grants)
        assert not caught.value.nothing_happened, location
    assert len(server.requests) == len(CHECKED_LOCATIONS)


AMBIGUOUS_LOCATIONS = [
    "http://127.1:{}/",
    "http://2130706433:{}/",
    "http://0x7f000001:{}/",
    "http://0177.0.0.1:{}/",
    "http://0x7f.1:{}/",
    "http://127.0.0.1%2f:{}/",
    "http://%31%32%37.0.0.1:{}/",
    "http://a@127.0.0.1:{}/",
    "http://127.0.0.1:{}@example.org/",
    "http://[::1%25lo]:{}/",
    "http:\\\\127.0.0.1:{}/",
    "http://[::127.1]:{}/",
    "http:///127.0.0.1:{}/",
    "gopher://127.0.0.1:{}/",
    "file:///etc/passwd",
    "http://127.0.0.1#@x:{}",
]


async def test_ambiguous_redirect_is_not_followed(host, server, names, code_of):
    names.known["start.test"] = ["127.0.0.1"]
    url = f"http://start.test:{server.port}/redirect"
    grants = ["http:host=start.test,network=loopback", "http"]
    codes = {}
    for location in AMBIGUOUS_LOCATIONS:
        params = {"to": location.format(server.port)}
        codes[location] = await code_of(host.op("http.get", {"url": url, "params": params}, grants=grants))
    assert {location: code for location, code in codes.items() if code not in {"op.denied", "http.url"}} == {}
    assert len(server.requests) == len(AMBIGUOUS_LOCATIONS)


@BOTH_BACKENDS
async def test_redirect_connects_to_the_address_of_its_target(host, server, names):
    names.known["start.test"], names.known[NAME] = ["127.0.0.1"], ["127.0.0.9"]
    url = f"http://start.test:{server.port}/redirect"
    with pytest.raises(ConnectFailed) as caught:
        await host.op("http.get", {"url": url, "params": {"to": f"http://{NAME}:{server.port}/echo"}})
    assert not caught.value.nothing_happened
    assert len(server.requests) == 1


@BOTH_BACKENDS
async def test_next_address_is_tried_if_the_first_refuses_the_connection(get, names, server):
    names.known[NAME] = ["127.0.0.9", "127.0.0.8", "127.0.0.1"]
    assert (await get(f"{GRANTED},network=loopback"))["status"] == 200
    assert (await get(f"{GRANTED},network=loopback"))["status"] == 200


async def test_at_most_eight_addresses_are_tried(get, names, server):
    names.known[NAME] = [*(f"127.0.0.{number}" for number in range(2, 10)), "127.0.0.1"]
    with pytest.raises(ConnectFailed):
        await get(f"{GRANTED},network=loopback")
    assert server.requests == []


async def test_name_without_an_address_is_a_connect_error(get, names):
    with pytest.raises(ConnectFailed, match="not known"):
        await get(GRANTED)
    names.known[NAME] = []
    with pytest.raises(ConnectFailed, match="no address"):
        await get(GRANTED)


async def test_address_with_a_zone_is_not_used(get, names):
    names.known[NAME] = ["fe80::1%2"]
    with pytest.raises(ConnectFailed, match="network interface"):
        await get(None)


def test_last_reached_address_is_tried_first(monkeypatch):
    connections = HttpConnections(Trust(), 10)
    peers = [Peer(NAME, ip_address("127.0.0.8")), Peer(NAME, ip_address("127.0.0.1"))]
    assert connections.in_order(peers) == peers
    connections.reached(peers[1])
    assert connections.in_order(peers) == peers[::-1]
    monkeypatch.setattr(sideband_http._transport._connections, "_MAX_REACHED", 1)
    connections.reached(Peer("other.test", peers[0].address))
    assert connections.in_order(peers) == peers


@BOTH_BACKENDS
async def test_certificate_must_match_the_name(open_host, tls_server, server_context, *, authority, ca_file, names):
    names.known[NAME] = names.known["other.test"] = ["127.0.0.1"]
    authority.issue_cert(NAME).configure_cert(server_context)
    async with open_host(ca_file=str(ca_file)) as host:
        url = tls_server.url("/echo").replace("127.0.0.1", NAME)
        for _ in range(2):
            assert (await host.op("http.get", {"url": url}))["status"] == 200
        for name in ("other.test", "127.0.0.1"):
            with pytest.raises(TlsFailed):
                await host.op("http.get", {"url": tls_server.url("/echo").replace("127.0.0.1", name)})
    assert [one.headers["host"] for one in tls_server.requests] == [f"{NAME}:{tls_server.port}"] * 2


async def test_http2_connection_is_not_shared_between_names_of_a_certificate(
    open_host, http2_server, server_context, *, authority, ca_file, names, monkeypatch
):
    names.known[NAME] = names.known["other.test"] = ["127.0.0.1"]
    authority.issue_cert(NAME, "other.test").configure_cert(server_context)
    opened = []
    serve = http2_server.serve
    monkeypatch.setattr(http2_server, "serve", lambda connection: (opened.append(connection), serve(connection)))
    async with open_host(ca_file=str(ca_file), transport="httpx") as host:
        for name in (NAME, NAME, "other.test"):
            url = http2_server.url("/").replace("127.0.0.1", name)
            assert (await host.op("http.get", {"url": url}))["http_version"] == "HTTP/2"
        assert len(opened) == 2
        with pytest.raises(AddressDenied):
            await host.op("http.get", {"url": url}, grants=["http:host=other.test"])
    assert len(opened) == 2


@BOTH_BACKENDS
async def test_tls_error_does_not_try_the_next_address(host, tls_server, names):
    names.known[NAME] = ["127.0.0.1", "127.0.0.9"]
    with pytest.raises(TlsFailed):
        await host.op("http.get", {"url": tls_server.url("/echo").replace("127.0.0.1", NAME)})


async def test_connection_to_another_address_is_closed(open_host, server, monkeypatch):
    connect = anyio.connect_tcp

    async def connect_tcp(remote_host, *args, **kwargs):
        return await connect("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(anyio, "connect_tcp", connect_tcp)
    async with open_host(transport="httpx") as host:
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1 instead of 127\.0\.0\.9"):
            await host.op("http.get", {"url": f"http://127.0.0.9:{server.port}/echo"})
    assert server.requests == []


async def test_sessions_and_downloads_check_addresses_too(host, server, names):
    names.known[NAME] = ["127.0.0.1"]
    url = f"http://{NAME}:{server.port}/echo"
    steps = [("http.session_open", {}), ("http.session_request", {"session_id": "$session", "url": url})]
    steps.append(("http.download", {"url": url, "path": "x"}))
    answers = await host.op("flow.run", {"steps": steps}, grants=["http", "files:mode=write"])
    assert [one.get("error") for one in answers] == [None, "http.network", "http.network"]
    assert server.requests == []
