"""Servers at an address: Streamable HTTP, and the older protocol with server-sent events."""

import pytest
from sideband_mcp import McpUnavailable

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("settings", [{"url": "/mcp"}, {"url": "/older/sse", "sse": True}], ids=["http", "sse"])
async def test_tools_at_an_address_are_called(open_host, session, served, settings):
    server = {**settings, "url": served.origin + settings["url"], "local": True}
    async with open_host({"things": server}) as host, session(host, "things__add") as call:
        assert (await call("things__add", a=2)).text == "3"


async def test_address_of_this_machine_needs_a_setting(open_host, session, served, caplog):
    async with open_host({"things": {"url": served.origin + "/mcp"}}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`things`", "has the address 127.0.0.1, which is not public")


@pytest.mark.parametrize(
    "address",
    [
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
        "[::ffff:10.0.0.1]",
        "[ff0e::1]",
        "[fec0::1]",
        "224.0.0.1",
    ],
)
async def test_address_that_leads_to_a_private_one_is_refused(open_host, session, caplog, address):
    async with open_host({"things": {"url": f"http://{address}/mcp"}}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`things`", "which is not public")


async def test_error_of_a_connection_is_named_once_with_its_own_remedy(open_host, served):
    async with open_host({"things": {"url": served.origin + "/mcp"}}) as host:
        with pytest.raises(McpUnavailable) as caught:
            await host.context_for("mcp").dispatch("mcp.list", {"server": "things"})
    assert caught.value.message.count("is unavailable") == 1
    assert caught.value.hint.startswith("set `local = true` in `[plugins.mcp.servers.things]`")


async def test_compressed_response_is_refused(open_host, session, served, caplog):
    server = {"url": served.origin + "/packed", "local": True}
    async with open_host({"things": server}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`things`", "its response is compressed")
        assert served.requests[-1]["accept-encoding"] == "identity"


async def test_secret_is_sent_to_the_server(open_host, session, served, credentials):
    credentials.add("things", "token-of-things", served.origin)
    server = {"url": served.origin + "/mcp", "local": True, "auth": "things"}
    async with open_host({"things": server}, credentials.plugin) as host, session(host, "things__add"):
        assert served.requests[-1]["authorization"] == "Bearer token-of-things"


async def test_redirect_to_another_origin_is_not_followed(open_host, session, served, caplog):
    server = {"url": served.origin + "/moved", "local": True}
    async with open_host({"things": server}) as host, session(host) as call:
        await call.wait_for_log(caplog, "`things`", "is unavailable")


async def test_message_that_is_too_large_is_refused(open_host, session, served):
    server = {"url": served.origin + "/mcp", "local": True}
    async with open_host({"things": server}, max_message_bytes=65_536) as host, session(host, "things__flood") as call:
        result = await call("things__flood", size=200_000)
        assert result.is_error
        assert "`things`" in result.text
        assert (await call("things__add", a=1)).text == "2"
