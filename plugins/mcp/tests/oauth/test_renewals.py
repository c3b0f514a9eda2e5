"""Tokens that expire or are revoked."""

import signal
import sys
from pathlib import Path

import anyio
import pytest
from sideband_mcp import McpLoginNeeded

pytestmark = pytest.mark.anyio

KILLED = Path(__file__).with_name("killed_renewal.py")


async def test_expired_token_is_renewed(things, now):
    async with things.open() as host:
        await things.log_in(host)
        assert await things.add(host, a=2) == "3"
        now.move(days=365)
        assert await things.add(host, a=3) == "4"
    assert len(things.guarded.tokens) == 2


async def test_token_that_expired_without_a_host_is_renewed(things, now):
    async with things.open() as host:
        await things.log_in(host)
    now.move(days=365)
    async with things.open() as host:
        assert await things.add(host, a=3) == "4"
    assert len(things.guarded.tokens) == 1


async def test_two_hosts_renew_once(things, now):
    async with things.open() as one, things.open() as other:
        await things.log_in(one)
        now.move(days=365)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.op, "mcp.list", {"server": "things"})
            tasks.start_soon(other.op, "mcp.list", {"server": "things"})
    assert len(things.guarded.tokens) == 1


async def test_requests_of_one_host_renew_once(things, now):
    async with things.open() as host:
        await things.log_in(host)
        await things.add(host, a=1)
        now.move(days=365)
        async with anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(lambda number=number: things.add(host, a=number))
    assert len(things.guarded.tokens) == 2


async def test_refused_token_is_renewed(things):
    async with things.open() as host:
        await things.log_in(host)
        await host.op("secrets.rotate", {"name": "mcp.things.access", "value": "not-the-token-of-the-server"})
        assert await things.add(host, a=2) == "3"
    assert len(things.guarded.tokens) == 2


async def test_revoked_authorization_asks_for_a_login(things):
    async with things.open() as host:
        client = (await things.log_in(host))["client_id"]
        await things.revoke(host, client)
        with pytest.raises(McpLoginNeeded, match="`invalid_grant`") as caught:
            await things.list(host)
        assert caught.value.hint == "run `sideband mcp login things`"
        assert await things.secrets(host) == {}


async def test_call_with_a_revoked_authorization_did_nothing_and_asks_for_a_login(things):
    async with things.open() as host:
        client = (await things.log_in(host))["client_id"]
        await things.add(host, a=2)
        await things.revoke(host, client)
        with pytest.raises(McpLoginNeeded) as caught:
            await things.add(host, a=2)
        assert caught.value.nothing_happened
        await things.log_in(host)
        assert await things.add(host, a=2) == "3"


async def test_host_that_is_killed_before_it_has_stored_the_tokens_leaves_a_question_for_a_login(things, tmp_path):
    async with things.open() as host:
        await things.log_in(host)
    await killed(tmp_path, things.guarded.url, 1)
    async with things.open() as host:
        with pytest.raises(McpLoginNeeded):
            await things.list(host)
        await things.log_in(host)
        assert await things.add(host, a=2) == "3"


async def test_host_that_is_killed_between_the_two_tokens_loses_nothing(things, tmp_path):
    async with things.open() as host:
        await things.log_in(host)
    await killed(tmp_path, things.guarded.url, 2)
    async with things.open() as host:
        await host.op("secrets.rotate", {"name": "mcp.things.access", "value": "one-that-must-be-renewed"})
        assert await things.add(host, a=2) == "3"


async def killed(folder, url, number):
    """Let a host renew the token, and kill it before its write with this number."""
    command = [sys.executable, str(KILLED), str(folder / "home"), url, str(number)]
    found = await anyio.run_process(command, check=False)
    assert found.returncode == -signal.SIGKILL, found.stderr
