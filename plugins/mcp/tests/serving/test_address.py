"""Clients at an address: Streamable HTTP in both eras of the protocol, behind a token."""

import socket
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from sideband.hooks import Ask
from sideband_mcp._serving._address import Address, serve_address

from .conftest import NEWER

pytestmark = pytest.mark.anyio

TOKEN = "token-of-the-test"
ACCEPT = {"Accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


class Served:
    """A server at an address of this machine."""

    def __init__(self, one, address):
        self.one, self.address = one, address

    def http(self, token=TOKEN, **headers):
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.AsyncClient(headers={**ACCEPT, **authorization, **headers}, trust_env=False, timeout=30)

    @asynccontextmanager
    async def client(self, mode, headers=None, **options):
        async with self.http(**headers or {}) as http:
            transport = streamable_http_client(self.address.url, http_client=http)
            async with Client(transport, mode=mode, cache=None, **options) as client:
                yield client

    async def post(self, body=INITIALIZE, token=TOKEN, **headers):
        async with self.http(token, **headers) as http:
            return await http.post(self.address.url, json=body)


@pytest.fixture
def served(serving):
    @asynccontextmanager
    async def opened(**limits):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = Address(listening, TOKEN, hosts=["mcp.example:80"], origins=["https://app.example"])
            async with serving(**limits) as one, anyio.create_task_group() as tasks:
                tasks.start_soon(serve_address, one.server, one.sessions, address)
                yield Served(one, address)
                tasks.cancel_scope.cancel()

    return opened


async def test_tools_are_called_with_progress_and_questions(served, mode, guard):
    guard.decide = lambda event: Ask("May it?") if event.tool == "things.change" else None
    seen = []

    async def note(progress, total, message):
        seen.append(progress)

    async with served() as server:
        server.one.user.answers = [{"answer": "once"}]
        async with server.client(mode, elicitation_callback=server.one.user) as client:
            assert len((await client.list_tools()).tools) > 5
            await client.call_tool("things__work", {}, progress_callback=note)
            assert seen[-1] == 3
            result = await client.call_tool("things__change", {"text": "it"})
            assert result.content[0].text == "changed it"


async def test_clients_have_sessions_of_their_own(served):
    async with served() as server, server.client("legacy") as first, server.client("legacy") as second:
        await first.call_tool("things__echo", {})
        await second.call_tool("things__echo", {})
        one, other = await server.one.records()
        assert one.origin.session != other.origin.session


async def test_newer_client_cannot_name_the_session_of_another_one(served):
    async with served() as server, server.client("legacy") as first:
        await first.call_tool("things__echo", {})
        ((connection, _),) = server.one.sessions._open
        async with server.client(NEWER, {"Mcp-Session-Id": connection}) as second:
            await second.call_tool("things__echo", {})
        one, other = await server.one.records()
        assert one.origin.session != other.origin.session


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403), ({"Mcp-Session-Id": ""}, 404)],
    ids=str,
)
async def test_refused_request_ends_no_session(served, mode, headers, status):
    async with served() as server, server.client(mode) as client:
        await client.call_tool("things__echo", {})
        (((connection, _), session),) = server.one.sessions._open.items()
        async with server.http(**{"Mcp-Session-Id": connection, **headers}) as http:
            assert (await http.delete(server.address.url)).status_code in (status, 400, 404, 405)
        assert session.is_open


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x"])
async def test_request_without_the_token_is_refused(served, token):
    async with served() as server:
        answer = await server.post(token=token)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


async def test_other_paths_need_the_token_too(served):
    async with served() as server, server.http("") as http:
        assert (await http.get(server.address.origin + "/other")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "mcp.example:80"}, 200),
        ({"Origin": "https://app.example"}, 200),
    ],
    ids=str,
)
async def test_names_and_origins_are_checked(served, headers, status):
    async with served() as server:
        assert (await server.post(**headers)).status_code == status


async def test_large_body_is_refused(served):
    async with served(body=10_000) as server:
        assert (await server.post({"padding": "x" * 20_000})).status_code == 413


async def test_number_of_clients_is_limited(served):
    async with served(sessions=1) as server, server.client("legacy") as client:
        await client.call_tool("things__echo", {})
        assert (await server.post()).status_code == 503


async def test_client_that_leaves_during_a_call_cancels_it(served, mode):
    async with served() as server:
        async with server.client(mode) as client:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.call_tool, "things__wait", {})
                    await server.one.door.began.wait()
                    scope.cancel()
        await server.one.door.left.wait()


async def test_connection_that_breaks_during_a_call_cancels_it(served):
    async with served() as server:
        opened = await server.post()
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        await server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "things__wait"}}
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: server.post(call, **session))
                await server.one.door.began.wait()
                scope.cancel()
        await server.one.door.left.wait()


async def test_client_that_ends_its_session_is_forgotten(served):
    async with served() as server:
        async with server.client("legacy") as client:
            await client.call_tool("things__echo", {})
            (session,) = server.one.sessions._open.values()
        await session.ended.wait()


async def test_idle_client_is_forgotten(served, mode):
    async with served(idle_seconds=0.2) as server, server.client(mode) as client:
        await client.call_tool("things__echo", {})
        (session,) = server.one.sessions._open.values()
        await session.ended.wait()
