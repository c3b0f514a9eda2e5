"""The tools of one session, resolved at the start of each turn from the newest snapshot of the host's tools."""

from __future__ import annotations

from attrs import define, field
from sideband.host import ToolRegistry
from sideband.tools import Tool, ToolView


@define(eq=False)
class SessionTools:
    """The tools of one session. A turn never waits for tools: it uses those that are known at its start.

    The tools of a child are those that its parent had when the child began, except those that its parent has lost.

    Args:
        registry: the tools of the host.
        parent: the tools of the parent, if the session is that of a child.
        wanted: the restrictions of the agent: a view that is resolved again in each turn.

    Attributes:
        allowed: the tools that may be called in this turn.
        offered: the tools that the model sees in this turn, possibly more.
    """

    registry: ToolRegistry = field(repr=False)
    parent: SessionTools | None = field(repr=False)
    wanted: ToolView = field(repr=False)
    allowed: ToolView = field(init=False)
    offered: ToolView = field(init=False, repr=False)
    _seen: object = field(default=None, init=False, repr=False)
    _newest: ToolView = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.parent is None:
            self.renew()
        else:
            self.offered = self.parent.offered
            self.allowed = self._newest = self.wanted.resolve(self.offered)

    def renew(self) -> None:
        """Resolve the tools again. Called at the start of each turn."""
        if self.parent is None:
            self.allowed = self.offered = self.newest()

    def newest(self) -> ToolView:
        """Return the tools that may be called now, maybe other ones than in this turn."""
        snapshot = self.registry.current
        if self.parent is None and snapshot is not self._seen:
            self._newest = self.wanted.resolve(snapshot.view)
            self._seen = snapshot
        return self._newest

    def current(self, tool: Tool) -> Tool | None:
        """Return a tool of this turn as it is now, or ``None`` if it was removed or its declaration was changed."""
        if self.parent is not None:
            return self.parent.current(tool)
        found = self.newest().get(tool.name)
        return found if found is tool or found == tool else None
