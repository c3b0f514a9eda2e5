"""A host with the guard, ops of all levels, and a clock that is set by hand."""

from types import MappingProxyType, SimpleNamespace

import anyio
import pytest
import sideband_guard_limits.plugin
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import Level, OpContext, OpFailed, OpFamily, op


class Letter(BaseModel):
    text: str = ""


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        return self.now


@op("mail.look", level=Level.MONITORED)
async def look(params: Letter, ctx: OpContext) -> None:
    """Look into the mailbox."""


@op("mail.mark", level=Level.CONTROLLED)
async def mark(params: Letter, ctx: OpContext) -> None:
    """Mark a letter."""


@op("mail.sort", level=Level.CONTROLLED, idempotent=True)
async def sort(params: Letter, ctx: OpContext) -> None:
    """Sort the letters, which can be repeated."""


@op("mail.send", level=Level.RESTRICTED, record=["text"])
async def send(params: Letter, ctx: OpContext) -> str:
    """Send a letter."""
    if params.text == "fail":
        raise OpFailed("the post office is closed")
    if params.text == "wait":
        await anyio.sleep_forever()
    return params.text


@op("mail.wipe", level=Level.PRIVILEGED)
async def wipe(params: Letter, ctx: OpContext) -> None:
    """Delete everything."""


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def mail():
    family = OpFamily(name="mail", ops=(look, mark, sort, send, wipe))
    return Plugin("op", "mail", SimpleNamespace(sideband_ops=lambda: family))


@pytest.fixture
def limits(clock):
    """The plugin, whose guard has the clock."""
    (guard,) = sideband_guard_limits.plugin.sideband_guards()

    class Guard(guard):
        def __init__(self):
            super().__init__(clock)

    value = SimpleNamespace(Config=sideband_guard_limits.plugin.Config, sideband_guards=lambda: [Guard])
    return Plugin("guard", "guard-limits", value)


@pytest.fixture
def make_host(sideband_host, mail, limits):
    """Return a function that creates a host with the guard, the ops and the given plugins, in the same home."""

    def make(*plugins, options=MappingProxyType({}), **config):
        return sideband_host(limits, mail, *plugins, settings={"plugins": {"guard-limits": config}}, **options)

    return make
