"""Sources of tools for tests, and what waits for them."""

from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
from sideband import Plugin
from sideband.tools import Tool


async def run(arguments, ctx):
    return "done"


def make(name, description="", parameters=None, **options):
    return Tool(name, description, {"type": "object"} if parameters is None else parameters, dict, run, **options)


class Source:
    """A source whose tools a test can change."""

    def __init__(self, *tools, name="tickets", scope="host"):
        self.name, self.scope, self.tools = name, scope, list(tools)
        self.seen = Counter()
        self.announced = anyio.Event()

    @asynccontextmanager
    async def open(self, ctx):
        self.seen[f"open {ctx.plugin}"] += 1
        try:
            yield self
        finally:
            self.seen["close"] += 1

    async def list(self):
        self.seen["list"] += 1
        return list(self.tools)

    async def changed(self):
        await self.announced.wait()
        self.announced = anyio.Event()

    def announce(self, *tools):
        self.tools = list(tools)
        self.announced.set()


def plugin(*items, name="desk"):
    return Plugin("tool", name, SimpleNamespace(sideband_tools=lambda: list(items)))


async def until(condition):
    """Wait until a condition holds."""
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110  there is no event for each condition
            await anyio.sleep(0.001)


async def listed(host):
    """Return the tools of a host once its sources were listed."""
    with anyio.fail_after(30):
        await host.tools.wait_for_sources()
    return host.tools.current.view
