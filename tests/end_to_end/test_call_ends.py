"""The end of a call: closed resources, and the limits of its result."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import CallRequest, Host, Plugin
from sideband.calls import _running_call as _calls
from sideband.ops import OpContext, OpFamily, op
from sideband.workers import SkillFailed

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

CODE = """
from sideband.skill import room, tool

@tool
async def enter(fail: bool = False) -> None:
    await room.open()
    await room.open()
    print("one")
    print("two")
    if fail:
        raise ValueError("on purpose")
"""


class Nothing(BaseModel):
    pass


@pytest.fixture
def room():
    """A plugin whose op registers a callback for the end of the call, and the calls that it ran for."""
    closed = []

    @op("room.open")
    async def open_(params: Nothing, ctx: OpContext) -> None:
        async def close():
            closed.append(ctx.call)

        ctx.on_call_end(close)

    module = SimpleNamespace(sideband_ops=lambda: OpFamily(name="room", ops=(open_,)))
    return Plugin(kind="op", name="room", value=module), closed


@pytest.fixture
def make_host(tmp_path, make_skill):
    return lambda plugin: Host(home=tmp_path / "home", skill_dirs=[make_skill("guest", CODE)], plugins=[plugin])


async def test_call_end_callbacks_run_when_the_call_succeeds(make_host, room):
    plugin, closed = room
    async with make_host(plugin) as host:
        result = await host.run(CallRequest("guest.enter", grants=()))
        assert closed == [result.call] * 2


async def test_call_end_callbacks_run_when_the_call_fails(make_host, room):
    plugin, closed = room
    async with make_host(plugin) as host:
        with pytest.raises(SkillFailed):
            await host.run(CallRequest("guest.enter", {"fail": True}, grants=()))
        assert len(closed) == 2


async def test_result_keeps_limited_effects_and_log_lines_while_listeners_get_all(make_host, room, monkeypatch):
    monkeypatch.setattr(_calls, "_MAX_EFFECTS", 1)
    monkeypatch.setattr(_calls, "_MAX_LOGS", 1)
    effects, lines = [], []
    async with make_host(room[0]) as host:
        result = await host.run(CallRequest("guest.enter", grants=(), on_effect=effects.append, on_log=lines.append))
    assert (len(result.effects), len(result.logs)) == (1, 1)
    assert (len(effects), [line.text for line in lines]) == (2, ["one", "two"])
