"""Sources of tools that are known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeGuard

from ..contexts import PluginContext
from ._tool import Tool, is_tool_name


class OpenedSource(Protocol):
    """An open source of tools. The host calls one method at a time, in the task in which it opened the source."""

    async def list(self) -> Sequence[Tool]:
        """Return the tools that exist now: a list. Their names are the name of the source, alone or before a dot."""

    async def changed(self) -> None:
        """Return when the tools may have changed since ``list`` was called. The host then lists them again."""


class ToolSource(Protocol):
    """A source of tools that are known only at run time, and may appear, change and disappear.

    ``sideband_tools()`` returns it besides tools. The host opens it, lists its tools and closes it, in a task of its
    own: no agent waits for it. Its tools are removed when it fails or is closed.

    Attributes:
        name: a name of lower-case words joined by ``_``, the namespace of its tools. No other source, plugin or skill
            may have it.
        scope: whether it is opened once for the ``host``, or for each ``session`` of an agent.
    """

    @property
    def name(self) -> str:
        """The name, which is the namespace of its tools."""

    @property
    def scope(self) -> Literal["host", "session"]:
        """Whether it is opened once for the ``host``, or for each ``session`` of an agent."""

    def open(self, ctx: PluginContext) -> AbstractAsyncContextManager[OpenedSource]:
        """Open the source for a host, or for a session.

        Args:
            ctx: the context of the plugin; for a session, an ``AgentContext``.
        """


def is_tool_source(value: object) -> TypeGuard[ToolSource]:
    """Return whether this is a ``ToolSource`` with a valid name."""
    name = None if isinstance(value, type) else getattr(value, "name", None)
    is_named = isinstance(name, str) and "." not in name and is_tool_name(name)
    return is_named and getattr(value, "scope", None) in ("host", "session") and callable(getattr(value, "open", None))
