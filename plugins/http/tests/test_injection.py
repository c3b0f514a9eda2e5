"""Line breaks and control characters in every field of a request."""

import pytest
from sideband.ops import OpError, OpUnavailable

pytestmark = pytest.mark.anyio

SECOND = "\r\n\r\nGET /evil HTTP/1.1\r\nHost: h"
EVIL = ["\r\nX-Evil: 1", "\nX-Evil: 1", "\rX-Evil: 1", "\r\n X-Evil: folded", "\0", SECOND]


def fields(url, evil):
    """Yield a request for each text field."""
    yield "http.get", {"url": url + evil}
    yield "http.get", {"url": url.replace("/echo", f"/echo{evil}/x")}
    yield "http.get", {"url": f"{url}?q={evil}"}
    yield "http.get", {"url": url.replace("127.0.0.1", f"127.0.0.1{evil}")}
    yield "http.request", {"url": url, "method": f"GET{evil}"}
    yield "http.request", {"url": url, "method": f"GET /evil HTTP/1.1{evil}"}
    yield "http.get", {"url": url, "headers": {"X-A": f"a{evil}"}}
    yield "http.get", {"url": url, "headers": {f"X-A{evil}": "a"}}
    yield "http.get", {"url": url, "cookies": {"a": f"b{evil}"}}
    yield "http.get", {"url": url, "cookies": {f"a{evil}": "b"}}
    yield "http.get", {"url": url, "auth": f"bearer{evil}"}
    yield "http.session_open", {"base_url": url + evil}
    yield "http.session_open", {"headers": {"X-A": f"a{evil}"}}
    yield "http.session_open", {"cookies": {"a": f"b{evil}"}}
    yield "http.download", {"url": url + evil, "path": "x"}


@pytest.mark.parametrize("evil", EVIL)
async def test_injection_in_any_field_is_rejected(host, server, evil):
    for op, params in fields(server.url("/echo"), evil):
        with pytest.raises((OpError, KeyError)):
            await host.op(op, params)
    assert server.requests == []


@pytest.mark.parametrize("evil", EVIL)
async def test_query_parameters_are_encoded(host, server, evil):
    await host.op("http.get", {"url": server.url("/echo"), "params": {f"a{evil}": f"b{evil}"}})
    assert "x-evil" not in server.requests[0].headers
    assert len(server.requests) == 1
    assert not {"\r", "\n", "\0", " "} & set(server.requests[0].path)


@pytest.mark.parametrize("evil", EVIL)
async def test_configured_user_agent_must_be_one_line(open_host, server, evil):
    async with open_host(user_agent=f"a{evil}") as host:
        with pytest.raises(OpUnavailable):
            await host.op("http.get", {"url": server.url("/echo")})


@pytest.mark.parametrize("location", ["/a%0d%0aX-Evil: 1", "/\x01", "http://h\tx/", "/%00", "/\x7f"])
async def test_injection_in_a_redirect_is_rejected(host, server, location):
    with pytest.raises(OpError):
        await host.op("http.get", {"url": server.url("/redirect"), "params": {"to": location, "code": "302"}})
    assert len(server.requests) == 1
