"""Where a name leads is checked, and connected to, once; and again at each redirect."""

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

NAME = "service.test"
GRANTED = f"http:host={NAME}"


class Names:
    """What the system says about names: a list of addresses, or a function that is called at each lookup."""

    def __init__(self):
        self.known = {}
        self.asked = []

    def __call__(self, host):
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answer = self.known[host]
        return [place(one) for one in (answer() if callable(answer) else answer)]


def place(address):
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
    """GET a path of the server by a name."""

    async def ask(grant, path="/echo", name=NAME, **params):
        url = f"http://{name}:{server.server_port}{path}"
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
)
def test_a_capability_that_names_no_network_means_the_public_one_or_what_its_addresses_are(capability, networks):
    assert HttpScope.complete(capability) == {"network": networks}


async def test_a_name_is_for_public_addresses_unless_more_is_granted(get, names, server):
    names.known[NAME] = ["127.0.0.1"]
    with pytest.raises(AddressDenied) as caught:
        await get(GRANTED)
    assert (caught.value.code, caught.value.exit_code, caught.value.nothing_happened) == ("http.network", 3, True)
    assert f"`{NAME}` stands for a loopback address" in caught.value.message
    assert f"--grant 'http:host={NAME},network=loopback'" in caught.value.hint
    assert server.seen == []


async def test_a_key_is_free_again_after_a_refusal(host, server, names):
    names.known[NAME] = ["127.0.0.1"]
    params = {"url": f"http://{NAME}:{server.server_port}/echo"}
    with pytest.raises(AddressDenied):
        await host.op("http.post", params, key="one", grants=[GRANTED])
    answer = await host.op("http.post", params, key="one", grants=[f"{GRANTED},network=loopback"])
    assert (answer["status"], len(server.seen)) == (200, 1)


@pytest.mark.parametrize("path", ["/status?code=503", "/hangup?failures=9"])
async def test_what_an_earlier_attempt_did_is_not_taken_back_by_a_refusal(host, server, names, monkeypatch, path):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_REMEMBERED_SECONDS", -1.0)
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    names.known[NAME] = lambda: next(answers)
    params = {"url": f"http://{NAME}:{server.server_port}{path}", "retry": 1, "retry_delay": 0}
    with pytest.raises(AddressDenied) as caught:
        await host.op("http.get", params, grants=[f"{GRANTED},network=loopback"])
    assert (caught.value.nothing_happened, len(server.seen)) == (False, 1)


async def test_a_redirect_that_is_refused_leaves_its_key_taken(host, server, names):
    names.known[NAME] = ["127.0.0.1"]
    url = f"http://{NAME}:{server.server_port}/redirect"
    params = {"url": url, "params": {"to": "http://10.0.0.1/"}}
    for error in (OpDenied, EffectUnknown):
        with pytest.raises(error):
            await host.op("http.post", params, key="one", grants=[f"{GRANTED},network=loopback"])
    assert len(server.seen) == 1


async def test_the_message_does_not_tell_the_address(get, names):
    names.known[NAME] = ["10.11.12.13"]
    with pytest.raises(AddressDenied) as caught:
        await get(GRANTED)
    assert "10.11" not in str(caught.value) + caught.value.hint


async def test_a_name_leads_where_its_grant_says(get, names, server):
    names.known[NAME] = ["127.0.0.1"]
    answer = await get(f"{GRANTED},network=loopback")
    assert answer["status"] == 200
    assert server.seen[0]["headers"]["host"] == f"{NAME}:{server.server_port}"


async def test_the_network_that_a_name_was_granted_is_no_other(get, names, server):
    names.known[NAME] = ["127.0.0.1"]
    with pytest.raises(AddressDenied):
        await get(f"{GRANTED},network=private|public|link-local|metadata")
    assert server.seen == []


async def test_whoever_uses_the_host_directly_may_go_anywhere(get, names):
    names.known[NAME] = ["127.0.0.1"]
    assert (await get(None))["status"] == 200


async def test_all_addresses_of_a_name_must_be_granted(get, names, server):
    names.known[NAME] = ["127.0.0.1", "8.8.8.8"]
    with pytest.raises(AddressDenied, match="public"):
        await get(f"{GRANTED},network=loopback")
    names.known["other.test"] = ["8.8.8.8", "127.0.0.1"]
    with pytest.raises(AddressDenied, match="loopback"):
        await get("http:host=other.test", name="other.test")
    assert server.seen == []


@pytest.mark.parametrize("address", ["224.0.0.1", "0.0.0.0", "255.255.255.255", "ff02::1", "::", "192.0.2.1"])
async def test_no_grant_opens_what_no_server_answers_at(get, host, names, address):
    names.known[NAME] = [address]
    with pytest.raises(AddressRefused) as caught:
        await get(None)
    assert (caught.value.code, caught.value.nothing_happened) == ("http.address", True)
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(AddressRefused):
        await host.op("http.get", {"url": f"http://{written}/"}, grants=["http:network=reserved|multicast"])


@pytest.mark.parametrize(
    "address",
    [
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
    ],
)
async def test_no_address_that_is_not_public_is_reached_by_a_public_name(get, names, address):
    names.known[NAME] = [address]
    with pytest.raises(AddressDenied):
        await get(GRANTED)


@pytest.mark.parametrize(
    "host_",
    [
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
    ],
)
async def test_no_address_is_reached_by_a_grant_that_does_not_name_it(host, server, host_):
    url = f"http://{host_}:{server.server_port}/"
    for grant in ("http", "http:scheme=http", "http:host=*", "http:host=1*|l*|x*|:*|6*|f*"):
        with pytest.raises(OpDenied):
            await host.op("http.get", {"url": url}, grants=[grant])
    assert server.seen == []


async def test_localhost_is_never_looked_up(host, server, names):
    url = server.url("/echo").replace("127.0.0.1", "localhost")
    names.known["localhost"] = ["8.8.8.8"]
    assert (await host.op("http.get", {"url": url}, grants=["http:host=localhost"]))["status"] == 200
    assert names.asked == []


async def test_a_name_is_not_looked_up_if_it_is_not_granted(get, names):
    names.known[NAME] = ["127.0.0.1"]
    for grant in ("http:host=other.test", f"{GRANTED},method=POST", f"{GRANTED},path=/x,network=loopback"):
        with pytest.raises(OpDenied):
            await get(grant)
    assert names.asked == []


async def test_a_session_looks_no_name_up_that_is_not_granted(host, names):
    steps = [("http.session_open", {}), ("http.session_request", {"session_id": "$session", "url": f"http://{NAME}/"})]
    answers = await host.op("flow.run", {"steps": steps}, grants=["http:host=other.test"])
    assert answers[1]["error"] == "op.denied"
    assert names.asked == []


async def test_an_answer_that_changes_is_asked_for_once_for_each_request(get, names, server):
    answers = iter([["127.0.0.1"], ["8.8.8.8"], ["8.8.8.8"]])
    names.known[NAME] = lambda: next(answers)
    assert (await get(f"{GRANTED},network=loopback"))["status"] == 200
    assert names.asked == [NAME]


async def test_a_name_that_flips_is_judged_by_what_it_is_now(open_host, names, server, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_REMEMBERED_SECONDS", -1.0)
    answers = iter([["127.0.0.1"], ["8.8.8.8"], ["127.0.0.1"]])
    names.known[NAME] = lambda: next(answers)
    url = f"http://{NAME}:{server.server_port}/echo"
    async with open_host() as host:
        loopback, public = [f"{GRANTED},network=loopback"], [GRANTED]
        assert (await host.op("http.get", {"url": url}, grants=loopback))["status"] == 200
        with pytest.raises(AddressDenied, match="public"):
            await host.op("http.get", {"url": url}, grants=loopback)
        with pytest.raises(AddressDenied, match="loopback"):
            await host.op("http.get", {"url": url}, grants=public)
    assert len(server.seen) == 1


async def test_a_connection_that_is_open_serves_only_who_may_reach_its_peer(open_host, names, server, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_REMEMBERED_SECONDS", -1.0)
    names.known[NAME] = ["127.0.0.1"]
    url = f"http://{NAME}:{server.server_port}/echo"
    async with open_host() as host:
        for _ in range(2):
            await host.op("http.get", {"url": url}, grants=[f"{GRANTED},network=loopback"])
        with pytest.raises(AddressDenied):
            await host.op("http.get", {"url": url}, grants=[GRANTED])
        names.known[NAME] = ["127.0.0.2"]
        with pytest.raises(ConnectFailed):
            await host.op("http.get", {"url": url}, grants=[f"{GRANTED},network=loopback"])
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{}/echo",
        "http://localhost:{}/",
        "http://[::1]:{}/",
        "http://[::ffff:7f00:1]:{}/",
        "//127.0.0.1:{}/",
        "http://service.test:{}/echo",
        "http://internal.test:{}/",
        "http://INTERNAL.test.:{}/",
    ],
)
async def test_a_redirect_is_resolved_and_judged_again(host, server, names, location):
    names.known["start.test"] = ["127.0.0.1"]
    names.known["internal.test"] = names.known[NAME] = ["10.0.0.1"]
    url = f"http://start.test:{server.server_port}/redirect"
    grants = ["http:host=start.test,network=loopback", "http:host=service.test", "http"]
    with pytest.raises(OpDenied) as caught:
        await host.op("http.get", {"url": url, "params": {"to": location.format(server.server_port)}}, grants=grants)
    assert not caught.value.nothing_happened
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "location",
    [
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
    ],
)
async def test_a_redirect_that_can_be_read_in_two_ways_is_not_followed(host, server, names, location):
    names.known["start.test"] = ["127.0.0.1"]
    url = f"http://start.test:{server.server_port}/redirect"
    grants = ["http:host=start.test,network=loopback", "http"]
    with pytest.raises((OpDenied, sideband_http.UrlInvalid)):
        await host.op("http.get", {"url": url, "params": {"to": location.format(server.server_port)}}, grants=grants)
    assert len(server.seen) == 1


async def test_a_redirect_is_sent_to_the_address_of_where_it_leads(host, server, names):
    names.known["start.test"], names.known[NAME] = ["127.0.0.1"], ["127.0.0.9"]
    url = f"http://start.test:{server.server_port}/redirect"
    with pytest.raises(ConnectFailed) as caught:
        await host.op("http.get", {"url": url, "params": {"to": f"http://{NAME}:{server.server_port}/echo"}})
    assert not caught.value.nothing_happened
    assert len(server.seen) == 1


async def test_the_next_address_is_tried_if_nobody_listens_at_the_first(get, names, server):
    names.known[NAME] = ["127.0.0.9", "127.0.0.8", "127.0.0.1"]
    assert (await get(f"{GRANTED},network=loopback"))["status"] == 200
    assert (await get(f"{GRANTED},network=loopback"))["status"] == 200


async def test_no_more_than_eight_addresses_are_tried(get, names, server):
    names.known[NAME] = [*(f"127.0.0.{number}" for number in range(2, 10)), "127.0.0.1"]
    with pytest.raises(ConnectFailed):
        await get(f"{GRANTED},network=loopback")
    assert server.seen == []


async def test_a_name_without_an_address_is_no_connection(get, names):
    with pytest.raises(ConnectFailed, match="not known"):
        await get(GRANTED)
    names.known[NAME] = []
    with pytest.raises(ConnectFailed, match="no address"):
        await get(GRANTED)


async def test_an_address_of_one_network_card_is_not_used(get, names):
    names.known[NAME] = ["fe80::1%2"]
    with pytest.raises(ConnectFailed, match="network card"):
        await get(None)


def test_the_address_that_answered_is_asked_first_the_next_time(monkeypatch):
    connections = HttpConnections(Trust(), 10)
    peers = [Peer(NAME, ip_address("127.0.0.8")), Peer(NAME, ip_address("127.0.0.1"))]
    assert connections.in_order(peers) == peers
    connections.reached(peers[1])
    assert connections.in_order(peers) == peers[::-1]
    monkeypatch.setattr(sideband_http._transport._connections, "_MOST_REACHED", 1)
    connections.reached(Peer("other.test", peers[0].address))
    assert connections.in_order(peers) == peers


async def test_a_certificate_must_be_for_the_name(open_host, tls_server, server_context, *, authority, ca_file, names):
    names.known[NAME] = names.known["other.test"] = ["127.0.0.1"]
    authority.issue_cert(NAME).configure_cert(server_context)
    async with open_host(ca_file=str(ca_file)) as host:
        url = tls_server.url("/echo").replace("127.0.0.1", NAME)
        for _ in range(2):
            assert (await host.op("http.get", {"url": url}))["status"] == 200
        for name in ("other.test", "127.0.0.1"):
            with pytest.raises(TlsFailed):
                await host.op("http.get", {"url": tls_server.url("/echo").replace("127.0.0.1", name)})
    assert [one["headers"]["host"] for one in tls_server.seen] == [f"{NAME}:{tls_server.server_port}"] * 2


async def test_a_connection_of_http2_serves_no_other_name_of_its_certificate(
    open_host, http2_server, server_context, *, authority, ca_file, names, monkeypatch
):
    names.known[NAME] = names.known["other.test"] = ["127.0.0.1"]
    authority.issue_cert(NAME, "other.test").configure_cert(server_context)
    opened = []
    handler = http2_server.RequestHandlerClass
    setup = handler.setup
    monkeypatch.setattr(handler, "setup", lambda self: (opened.append(self.client_address), setup(self)))
    async with open_host(ca_file=str(ca_file), transport="httpx") as host:
        for name in (NAME, NAME, "other.test"):
            url = http2_server.url("/").replace("127.0.0.1", name)
            assert (await host.op("http.get", {"url": url}))["http_version"] == "HTTP/2"
        assert len(opened) == 2
        with pytest.raises(AddressDenied):
            await host.op("http.get", {"url": url}, grants=["http:host=other.test"])
    assert len(opened) == 2


async def test_who_can_not_prove_who_it_is_is_not_passed_over(host, tls_server, names):
    names.known[NAME] = ["127.0.0.1", "127.0.0.9"]
    with pytest.raises(TlsFailed):
        await host.op("http.get", {"url": tls_server.url("/echo").replace("127.0.0.1", NAME)})


async def test_a_connection_that_leads_elsewhere_is_not_used(open_host, server, monkeypatch):
    connect = anyio.connect_tcp

    async def connect_tcp(remote_host, *args, **kwargs):
        return await connect("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(anyio, "connect_tcp", connect_tcp)
    async with open_host(transport="httpx") as host:
        with pytest.raises(ConnectFailed, match=r"leads to 127\.0\.0\.1 instead of 127\.0\.0\.9"):
            await host.op("http.get", {"url": f"http://127.0.0.9:{server.server_port}/echo"})
    assert server.seen == []


async def test_sessions_and_downloads_are_judged_in_the_same_way(host, server, names):
    names.known[NAME] = ["127.0.0.1"]
    url = f"http://{NAME}:{server.server_port}/echo"
    steps = [("http.session_open", {}), ("http.session_request", {"session_id": "$session", "url": url})]
    steps.append(("http.download", {"url": url, "path": "x"}))
    answers = await host.op("flow.run", {"steps": steps}, grants=["http"])
    assert [one.get("error") for one in answers] == [None, "http.network", "http.network"]
    assert server.seen == []
