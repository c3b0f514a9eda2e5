"""Each server as a source of tools."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
from attrs import define, field, frozen
from sideband.approvals import ApprovalNeeded
from sideband.ops import Level, OpError
from sideband.plugins import PluginContext
from sideband.rendering import render
from sideband.tools import Tool, ToolContext

from ._accepted import right_of
from ._answering import answer_to
from ._catalog import Pins, tool_names
from ._config import ServerConfig
from ._models import ToolDefinition
from ._output import output_of

_MAX_REPORTED = 20
_ABANDON_SECONDS = 5.0
_LONGEST = 86_400.0  # the op has the timeout of a call, which excludes the time of answers
_log = logging.getLogger("sideband.mcp")


@frozen
class ServerSource:
    """A server as a source of tools, opened by each session.

    Attributes:
        name: the name of the server.
        settings: its table.
    """

    name: str
    settings: ServerConfig = field(repr=False)
    scope: Literal["session"] = "session"

    @asynccontextmanager
    async def open(self, ctx: PluginContext) -> AsyncIterator[OpenedServer]:
        """Open the source. The server itself is connected to once the tools that the user accepted are listed."""
        yield OpenedServer(self.name, self.settings, ctx)


@define
class OpenedServer:
    """A source in one session: the tools that the user accepted.

    They are offered at once, as they were accepted, before the server is started. A call of one that it has changed
    since then is refused. What the server offers beyond them is offered to the model once the user has accepted it.
    """

    server: str
    settings: ServerConfig
    ctx: PluginContext
    _listed: Mapping[str, Any] = field(init=False, factory=dict)
    _looked: Literal["no", "accepted", "new", "yes"] = field(init=False, default="no")
    _refused: set[str] = field(init=False, factory=set)
    _reported: set[str] = field(init=False, factory=set)

    async def look(self) -> Mapping[str, Any]:
        """Return what the server offers, and what the user accepted of it: the result of `mcp.list`."""
        self._listed = await self.ctx.dispatch("mcp.list", {"server": self.server})
        return self._listed

    async def list(self) -> Sequence[Tool]:
        """Return the accepted tools."""
        if self._looked == "no":
            self._listed = await self._pinned()
            self._looked = "accepted"
        elif self._looked == "new":
            self._looked = "yes"
        else:
            await self.look()
            self._looked = "yes"
        tools = [ToolDefinition.model_validate(one) for one in self._listed["tools"]]
        names, unnamed = tool_names(self.server, [one.name for one in tools])
        self._report([*self._listed["problems"], *unnamed])
        return [self._tool(names[one.name], one) for one in tools if one.name in names]

    async def changed(self) -> None:
        """Ask the user to accept what is new, and return when the tools may have changed."""
        if self._looked == "accepted":
            await self.look()
            self._looked = "new"
            return
        offered, catalog, install = (self._listed[name] for name in ("offered", "catalog", "install"))
        if (install or catalog) not in self._refused and await self.ask():
            return
        if install:
            await anyio.sleep_forever()  # the user refused them in this session
        digests = {"accepted": self._listed["accepted"], "offered": offered}
        await self.ctx.dispatch("mcp.changes", {"server": self.server, **digests})

    async def _pinned(self) -> Mapping[str, Any]:
        """Return what the user accepted, without a connection."""
        pin = await Pins(self.ctx.store).of(self.server)
        tools = [one.model_dump() for one in pin.tools if self.settings.offers(one.name)]
        return {"tools": tools, "accepted": pin.catalog, "problems": ()}

    async def ask(self) -> bool:
        """Ask the user to accept what is new of what was listed. Return whether the user did."""
        catalog, install = self._listed["catalog"], self._listed["install"]
        if install:
            request = {"packages": install, "changes": self._listed["packages"]}
            return await self._accepts("mcp.install", request, f"mcp:server={self.server},packages={install}", install)
        if not self._listed["changes"]:
            return False
        request = {"catalog": catalog, "changes": self._listed["changes"]}
        return await self._accepts("mcp.accept", request, right_of(self.server, catalog), catalog)

    async def _accepts(self, op: str, request: Mapping[str, Any], right: str, digest: str) -> bool:
        """Dispatch an op whose missing right is the question. Return whether the user gave it."""
        try:
            await self.ctx.dispatch(op, {"server": self.server, **request}, uses=[right])
        except ApprovalNeeded:
            hint = f"run `sideband mcp test {self.server}`"
            _log.warning("the MCP server `%s`: what is new is not offered until you accept it: %s", self.server, hint)
        except OpError as error:
            if error.code != "op.denied":
                raise
        else:
            return True
        self._refused.add(digest)
        return False

    def _report(self, problems: Sequence[str]) -> None:
        """Log the tools that were left out, once."""
        for one in problems[:_MAX_REPORTED]:
            if one not in self._reported:
                self._reported.add(one)
                _log.warning("the MCP server `%s`: a tool is not offered: %s", self.server, render(one))

    def _tool(self, name: str, definition: ToolDefinition) -> Tool:
        request = {"server": self.server, "tool": definition.name, "catalog": self._listed["accepted"]}
        right = right_of(self.server, self._listed["accepted"])

        async def run(arguments: dict[str, Any], ctx: ToolContext) -> Any:
            found = await ctx.dispatch("mcp.call", {**request, "arguments": arguments}, uses=[right])
            while found["ask"] is not None:
                open_ask = {**request, "exchange": found["exchange"], "ask": found["ask"]["id"]}
                try:
                    answer = await answer_to(found["ask"], self.server, self.settings, ctx)
                except BaseException:
                    with anyio.move_on_after(_ABANDON_SECONDS, shield=True):
                        await ctx.dispatch("mcp.answer", {**open_ask, "action": "abandon"}, uses=[right])
                    raise
                found = await ctx.dispatch("mcp.answer", {**open_ask, **answer}, uses=[right])
            return output_of(found)

        reads = self.settings.only_reads(definition.name)
        return Tool(
            name=name,
            description=definition.description,
            parameters=definition.parameters,
            validate=dict,
            run=run,
            level=Level.MONITORED if reads else Level.RESTRICTED,
            read_only=reads,
            timeout=_LONGEST,
            resume="replay",
            category=self.server,
        )
