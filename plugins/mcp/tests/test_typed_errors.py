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

from .conftest import Program

pytestmark = pytest.mark.anyio


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


async def test_tool_that_changed_is_not_called(program):
    changes = "TOOL['description'] += '!'\nsend(method='notifications/tools/list_changed')\nreturn text('gone')"
    used = await program(changes)
    catalog = await used.accept()
    await used.call(catalog)
    with pytest.raises(McpChanged, match="changed its tool `go`"):
        await used.call(catalog)


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
