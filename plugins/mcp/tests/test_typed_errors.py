"""Each failure of a server has an error of its own, for programs that dispatch the ops."""

import pytest
from sideband_mcp import (
    McpChanged,
    McpInterrupted,
    McpInvalid,
    McpNotOffered,
    McpRefused,
    McpServerUnknown,
    McpTimeout,
    McpTooLarge,
    McpToolUnknown,
    McpUnavailable,
)

pytestmark = pytest.mark.anyio


class Program:
    """A program that uses one server, of which it accepts everything."""

    def __init__(self, host):
        self.ctx = host.context_for("mcp")

    async def accept(self):
        listed = await self.ctx.dispatch("mcp.list", {"server": "things"})
        request = {"catalog": listed["offered"], "changes": listed["changes"]}
        await self.ctx.dispatch("mcp.accept", {"server": "things", **request})
        return listed["offered"]

    async def call(self, catalog, tool="go", server="things"):
        return await self.ctx.dispatch("mcp.call", {"server": server, "catalog": catalog, "tool": tool})


@pytest.fixture
async def program(open_host, raw_server):
    """Return a function that opens a host whose server answers calls with this code."""

    async def opened(body="return text('gone')", **settings):
        lines = body.replace("\n", "\n        ")
        code = f"""
def answer(method, params, number):
    if method == "tools/call":
        {lines}
    return default(method, params)
"""
        host = open_host({"things": raw_server(code, **settings)}, max_message_bytes=65_536)
        hosts.append(host)
        return Program(await host.__aenter__())

    hosts = []
    yield opened
    for host in hosts:
        await host.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("import os; os._exit(3)", McpInterrupted),
        ("print('x' * 70_000, flush=True)", McpTooLarge),
        ("return {'content': 5}", McpInvalid),
        ("send(id=number, error={'code': -32000, 'message': 'no'})", McpRefused),
        ("send(id=number, error={'code': -32000, 'message': 'Connection closed'})", McpInterrupted),
    ],
)
async def test_failed_call_has_its_error(program, body, error):
    used = await program(body)
    catalog = await used.accept()
    with pytest.raises(error) as caught:
        await used.call(catalog)
    assert caught.value.server == "things"
    assert not caught.value.nothing_happened


async def test_closed_connection_is_not_used_again(program):
    # The first call of each process says that the connection is closed; a second one would be answered.
    ends = "send(id=number, error={'code': -32000, 'message': 'Connection closed'})"
    used = await program(
        f"TOOL['calls'] = TOOL.get('calls', 0) + 1\nif TOOL['calls'] == 1: {ends}\nelse: return text('again')"
    )
    catalog = await used.accept()
    for _ in range(2):
        with pytest.raises(McpInterrupted):
            await used.call(catalog)


async def test_call_without_an_answer_times_out(program):
    used = await program("return None", call_seconds=0.2)
    catalog = await used.accept()
    with pytest.raises(McpTimeout, match=r"within 0\.2 s"):
        await used.call(catalog)


async def test_call_with_another_catalog_is_refused(program):
    used = await program()
    await used.accept()
    with pytest.raises(McpChanged):
        await used.call("0" * 64)


async def test_unknown_server_and_tool_are_named(program):
    used = await program()
    catalog = await used.accept()
    with pytest.raises(McpToolUnknown, match="`stop`"):
        await used.call(catalog, tool="stop")
    with pytest.raises(McpServerUnknown, match="`others` is not configured"):
        await used.call(catalog, server="others")


async def test_program_that_is_missing_is_unavailable(open_host):
    async with open_host({"things": {"command": ["/missing"]}}) as host:
        with pytest.raises(McpUnavailable, match="`/missing` is not installed"):
            await Program(host).accept()


def test_feature_that_is_not_offered_is_named():
    assert "offers no prompts that you accepted" in McpNotOffered("things", "prompts").message
