"""The port of this machine to which the browser comes back."""

import httpx2
import pytest
from sideband_mcp import McpLoginFailed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def waiting(things):
    """A host with a login that waits, and what the person sees."""
    async with things.open() as host:
        yield host, await things.ask(host)


def redirect_of(asked, **fields):
    """The address of a browser that comes back."""
    state = httpx2.URL(asked["address"]).params["state"]
    return str(httpx2.URL(asked["redirect"]).copy_merge_params({"code": "code", "state": state, **fields}))


async def send(method, url, **headers):
    async with httpx2.AsyncClient() as http:
        return await http.request(method, url, headers=headers)


async def test_requests_that_are_not_the_redirect_are_refused_and_end_nothing(waiting, things):
    host, asked = waiting
    right = redirect_of(asked)
    wrong = {
        redirect_of(asked, state="wrong"): 400,
        redirect_of(asked, state=""): 400,
        redirect_of(asked, code=""): 400,
        f"{right}&state=wrong": 400,
        f"{right}{'&x=1' * 30}": 400,
        asked["redirect"]: 400,
        right.replace("/callback", "/other"): 404,
    }
    assert {address: (await send("GET", address)).status_code for address in wrong} == wrong
    assert (await send("POST", right)).status_code == 404
    await things.browser.open(asked["address"])
    await host.op("mcp.login", {"server": "things"})


async def test_page_with_another_host_name_cannot_answer(waiting):
    _, asked = waiting
    assert (await send("GET", redirect_of(asked), host="attacker.example")).status_code == 400


async def test_second_redirect_is_refused(waiting, things):
    host, asked = waiting
    await things.browser.open(asked["address"])
    await host.op("mcp.login", {"server": "things"})
    with pytest.raises(httpx2.ConnectError):
        await send("GET", redirect_of(asked))


async def test_request_that_is_too_large_is_refused(waiting):
    _, asked = waiting
    with pytest.raises(httpx2.HTTPError):
        await send("GET", redirect_of(asked), x="x" * 100_000)
    assert (await send("GET", asked["redirect"])).status_code == 400  # the port is still open


async def test_answer_of_the_port_repeats_nothing_of_the_request(waiting):
    _, asked = waiting
    found = await send("GET", redirect_of(asked, state="<script>"))
    assert "script" not in found.text
    assert found.headers["content-security-policy"] == "default-src 'none'"


async def test_port_is_closed_with_the_host(things):
    async with things.open() as host:
        asked = await things.ask(host)
    with pytest.raises(httpx2.ConnectError):
        await send("GET", redirect_of(asked))


async def test_login_that_has_not_begun_cannot_be_ended(things):
    async with things.open() as host:
        with pytest.raises(McpLoginFailed, match="no login has begun"):
            await host.op("mcp.login", {"server": "things", "redirect": "http://127.0.0.1:1/callback?code=1&state=1"})
