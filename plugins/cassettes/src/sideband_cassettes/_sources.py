"""Sources of tools on a cassette: their tools are recorded, and a replay offers them without opening the source."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, NoReturn

from anyio import sleep_forever
from attrs import frozen
from sideband.contexts import PluginContext
from sideband.ops import Level
from sideband.tools import OpenedSource, Tool, ToolContext, ToolSource

_PLAIN = ("name", "description", "parameters", "read_only", "exclusive", "timeout", "from_host")


@frozen(eq=False)
class TapedSource:
    """A source of tools that is opened to record its tools, or whose recorded tools are offered.

    Args:
        source: the source.
        known: returns the recorded tools, or ``None`` if the source is to be opened.
        record: called with the tools as data when the source has listed them.
    """

    _source: ToolSource
    _known: Callable[[], Sequence[Tool] | None]
    _record: Callable[[Sequence[Mapping[str, Any]]], None]

    @property
    def name(self) -> str:
        """See ``ToolSource``."""
        return self._source.name

    @property
    def scope(self) -> Literal["host", "session"]:
        """See ``ToolSource``."""
        return self._source.scope

    @asynccontextmanager
    async def open(self, ctx: PluginContext) -> AsyncIterator[OpenedSource]:
        """See ``ToolSource``."""
        known = self._known()
        if known is not None:
            yield _Recorded(known)
            return
        async with self._source.open(ctx) as opened:
            yield _Listening(opened, self._record)


@frozen(eq=False)
class _Recorded:
    tools: Sequence[Tool]

    async def list(self) -> Sequence[Tool]:
        return self.tools

    async def changed(self) -> None:
        await sleep_forever()


@frozen(eq=False)
class _Listening:
    opened: OpenedSource
    record: Callable[[Sequence[Mapping[str, Any]]], None]

    async def list(self) -> Sequence[Tool]:
        tools = await self.opened.list()
        if isinstance(tools, list | tuple) and all(isinstance(one, Tool) for one in tools):
            self.record([{**{name: getattr(one, name) for name in _PLAIN}, "level": one.level.name} for one in tools])
        return tools

    async def changed(self) -> None:
        await self.opened.changed()


def recorded_tools(listed: Any) -> list[Tool]:
    """Return the tools that a source has listed. Their calls are answered like other recorded effects.

    Raises:
        TypeError, LookupError, ValueError: if the data does not describe tools.
    """
    return [
        Tool(**{name: one[name] for name in _PLAIN}, level=Level[one["level"]], validate=dict, run=_unavailable)
        for one in listed
    ]


async def _unavailable(arguments: dict[str, Any], ctx: ToolContext) -> NoReturn:  # noqa: ARG001  the signature of a tool
    raise RuntimeError("the source of this tool is not open: it is replayed from a cassette")
