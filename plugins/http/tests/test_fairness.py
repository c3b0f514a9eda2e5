"""A skill that occupies connections cannot block other skills."""

from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.ops import OpContext, OpError, OpFamily, op

pytestmark = pytest.mark.anyio


class Target(BaseModel):
    url: str


@op("greedy.sessions", timeout=60)
async def sessions(params: Target, ctx: OpContext) -> None:
    async def one() -> None:
        opened = await ctx.dispatch("http.session_open", {})
        await ctx.dispatch("http.session_request", {**opened, "url": f"{params.url}/silent"})

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(one)


@op("greedy.go", timeout=60)
async def go(params: Target, ctx: OpContext) -> None:
    async def one() -> None:
        try:
            await ctx.dispatch("http.get", {"url": f"{params.url}/silent"})
        except OpError:
            return

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(one)


async def serve(stream):
    async with stream:
        request = await stream.receive()
        if b"/silent" in request:
            await anyio.sleep_forever()
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


async def test_unanswered_requests_leave_connections_for_others(tmp_path):
    module = SimpleNamespace(sideband_ops=lambda: OpFamily(name="greedy", ops=(go,)))
    settings = {"plugins": {"http": {"max_connections": 4}}}
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
    host = Host(home=tmp_path, plugins=[Plugin("op", "greedy", module)], settings=settings)
    async with host, listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        tasks.start_soon(host.op, "greedy.go", {"url": url})
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(10):
            for _ in range(3):
                assert (await host.op("http.get", {"url": f"{url}/fast"}))["body"] == "ok"
        tasks.cancel_scope.cancel()


async def test_sessions_of_a_caller_share_its_connection_limit(tmp_path):
    begun, two = [], anyio.Event()

    async def hold(stream):
        if len(begun) == 1:
            two.set()
        begun.append(stream)
        await serve(stream)

    module = SimpleNamespace(sideband_ops=lambda: OpFamily(name="greedy", ops=(sessions,)))
    settings = {"plugins": {"http": {"max_connections": 4}}}
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
    host = Host(home=tmp_path, plugins=[Plugin("op", "greedy", module)], settings=settings)
    async with host, listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, hold)
        tasks.start_soon(host.op, "greedy.sessions", {"url": url})
        with anyio.fail_after(10):
            await two.wait()
            for _ in range(3):
                await host.op("http.get", {"url": f"{url}/fast"})
        assert len(begun) == 2 + 3
        tasks.cancel_scope.cancel()
