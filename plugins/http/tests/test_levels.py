"""The level of a request follows from its method, and from whether the grant says to which hosts it may go."""

import pytest
from sideband.ledger import find
from sideband.ops import Grant, OpDenied

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def levels(host):
    """Return a function that runs steps and returns the levels of their requests in the ledger."""

    async def run(*steps, grants):
        reports = []
        await host.op("flow.run", {"steps": list(steps)}, grants=["flow", *grants], on_effect=reports.append)
        requests = [one.id for one in reports if one.op.startswith("http.")]
        return [(await find(host.ledger.folder, effect)).level.name for effect in requests]

    return run


LIMITED = "http:host=127.0.0.1"
ANYWHERE = "http:network=loopback"


@pytest.mark.parametrize("verb", ["get", "head", "options"])
async def test_request_that_reads_is_monitored_only_where_its_hosts_are_limited(levels, server, verb):
    step = (f"http.{verb}", {"url": server.url("/echo")})
    assert await levels(step, grants=[LIMITED]) == ["MONITORED"]
    assert (await levels(step, grants=[ANYWHERE]))[-1] == "CONTROLLED"
    assert (await levels(step, grants=["http:host=127*,network=loopback"]))[-1] == "CONTROLLED"


@pytest.mark.parametrize(
    ("method", "level"),
    [
        *(("GET", "MONITORED"), ("HEAD", "MONITORED"), ("OPTIONS", "MONITORED")),
        *(("PUT", "CONTROLLED"), ("DELETE", "CONTROLLED")),
        *(("POST", "RESTRICTED"), ("PATCH", "RESTRICTED"), ("PURGE", "RESTRICTED")),
    ],
)
async def test_request_has_the_level_of_its_method_in_every_op(levels, server, method, level):
    url = server.url("/echo")
    assert (await levels(("http.request", {"url": url, "method": method}), grants=[LIMITED]))[-1] == level
    if method != "PURGE":
        assert (await levels((f"http.{method.lower()}", {"url": url}), grants=[LIMITED]))[-1] == level


async def test_session_request_has_the_level_of_its_grant(levels, server):
    opened = ("http.session_open", {})
    ask = ("http.session_request", {"session_id": "$session", "url": server.url("/echo")})
    assert await levels(opened, ask, grants=[f"{LIMITED},method=GET"]) == ["SAFE", "MONITORED"]
    assert (await levels(opened, ask, grants=[f"{ANYWHERE},method=GET"]))[-1] == "CONTROLLED"
    assert (await levels(opened, ask, grants=[LIMITED]))[-1] == "RESTRICTED"


async def test_redirect_to_a_host_of_another_capability_was_decided_at_its_level(levels, server, other):
    url = server.url("/redirect?to=") + other.url("/echo").replace("127.0.0.1", "localhost")
    grants = [LIMITED, f"{ANYWHERE},method=GET"]
    assert await levels(("http.get", {"url": url}), grants=grants) == ["CONTROLLED"]
    assert len(other.requests) == 1


async def test_redirect_from_limited_hosts_cannot_leave_them(host, server, other):
    url = server.url("/redirect?to=") + other.url("/echo").replace("127.0.0.1", "localhost")
    with pytest.raises(OpDenied):
        await host.op("http.get", {"url": url}, grants=[f"{LIMITED},method=GET"])
    assert other.requests == []


@pytest.mark.parametrize(
    ("capability", "level"),
    [
        ("http:host=api.github.com,method=GET", "MONITORED"),
        ("http:host=a.org|b.org,method=GET|HEAD|OPTIONS", "MONITORED"),
        ("http:method=GET", "CONTROLLED"),
        ("http:host=*,method=GET", "CONTROLLED"),
        # also the host a.org.attacker.net
        ("http:host=a.org*,method=GET", "CONTROLLED"),
        ("http:path=/data,method=GET", "CONTROLLED"),
        ("http:host=a.org,method=GET|PUT", "CONTROLLED"),
        ("http:host=a.org,method=GET|POST", "RESTRICTED"),
        ("http:host=a.org", "RESTRICTED"),
        ("http:host=a.org,method=*", "RESTRICTED"),
        ("http", "RESTRICTED"),
    ],
)
async def test_grant_has_the_level_of_what_it_allows(host, capability, level):
    ops = host.broker.ops
    assert (await ops.reach(await ops.grant([capability]))).name == level


async def test_download_and_blob_are_controlled_and_require_the_right_to_store(levels, server, host):
    url = server.url("/echo")
    grants = [f"{LIMITED},method=GET", "files:mode=write", "blobs:mode=write"]
    steps = [("http.download", {"url": url, "path": "x"}), ("http.fetch_blob", {"url": url})]
    assert await levels(*steps, grants=grants) == ["CONTROLLED", "CONTROLLED"]
    for op, params in steps:
        with pytest.raises(OpDenied):
            await host.op(op, params, grants=[LIMITED])
    assert str(Grant.parse(grants)) == "blobs:mode=write files:mode=write http:host=127.0.0.1,method=GET"
