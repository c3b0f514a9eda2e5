"""The tools of one session, resolved at the start of each turn from the newest snapshot of the host's tools."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, evolve, field
from sideband.host import ProvidedSource, RunningSource, ToolRegistry, close_sources, tool_fault
from sideband.plugins import PluginContext
from sideband.tools import Tool, ToolSource, ToolView, is_tool_source

from ._errors import ToolRefused

_OWN = "session"
"""The ``source`` of the tools that the agent's program offered, and the beginning of that of a session's sources."""


@define(eq=False)
class OwnTools:
    """The tools and sources of tools that the program offers to one agent, in whatever session is open.

    Attributes:
        tools: the tools by name.
        sources: the sources by name, each with the plugin whose rights it has, if it has those of one.
    """

    tools: dict[str, Tool] = field(factory=dict)
    sources: dict[str, ProvidedSource] = field(factory=dict)


@define(eq=False)
class SessionTools:
    """The tools of one session. A turn never waits for tools: it uses those that are known at its start.

    What had a name first keeps it: a tool of the host that appears with the name of one of the session is omitted. The
    tools of a child are those that its parent had when the child began, except those that its parent has lost.

    Args:
        registry: the tools of the host.
        parent: the tools of the parent, if the session is that of a child.
        wanted: the restrictions of the agent: a view that is resolved again in each turn.
        own: the tools that the program offers; ``None`` for a child.
        context: makes the context that a source of the session is opened with from that of its plugin.

    Attributes:
        allowed: the tools that may be called in this turn.
        offered: the tools that the model may see in this turn, possibly more.
        sent: the tools that the last request sent.
        requested: the names of tools that the model called although they were not sent, as it knows them.
    """

    registry: ToolRegistry = field(repr=False)
    parent: SessionTools | None = field(repr=False)
    wanted: ToolView = field(repr=False)
    own: OwnTools = field(repr=False)
    context: Callable[[PluginContext | None], PluginContext] = field(repr=False)
    allowed: ToolView = field(init=False)
    offered: ToolView = field(init=False, repr=False)
    sent: ToolView = field(init=False, repr=False)
    requested: frozenset[str] = field(default=frozenset(), init=False, repr=False)
    _seen: object = field(default=None, init=False, repr=False)
    _newest: ToolView = field(init=False, repr=False)
    _problems: tuple[str, ...] = field(default=(), init=False, repr=False)
    _refused: tuple[str, ...] = field(default=(), init=False, repr=False)
    _running: dict[str, RunningSource] | None = field(default=None, init=False, repr=False)
    _opened: list[RunningSource] = field(factory=list, init=False, repr=False)
    _closed: bool = field(default=False, init=False, repr=False)
    _plugins: dict[str, PluginContext | None] | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.parent is None:
            self.renew()
        else:
            self.offered = self.parent.offered
            self.allowed = self._newest = self.wanted.resolve(self.offered)
        self.sent = self.offered

    def renew(self) -> None:
        """Resolve the tools again. Called at the start of each turn."""
        if self.parent is None:
            self.allowed = self.offered = self.newest()

    def newest(self) -> ToolView:
        """Return the tools that may be called now, maybe other ones than in this turn."""
        snapshot = self.registry.current
        if self.parent is None and snapshot is not self._seen:
            self._newest = self.wanted.resolve(self._together(snapshot.view))
            self._seen = snapshot
        return self._newest

    def current(self, tool: Tool) -> Tool | None:
        """Return a tool of this turn as it is now, or ``None`` if it was removed or its declaration was changed."""
        if self.parent is not None:
            return self.parent.current(tool)
        found = self.newest().get(tool.name)
        # The schema too: a program or a source may have changed the parameters in place, which both then share.
        is_same = found is tool or (found == tool and found.schema == tool.schema)
        return found if is_same else None

    def plugin(self, tool: Tool) -> PluginContext | None:
        """Return the context of the plugin that provides a tool; ``None`` for a tool of a skill or of the program."""
        if self.parent is not None:
            return self.parent.plugin(tool)
        if self._plugins is not None and tool.source in self._plugins:
            return self._plugins[tool.source]
        return self.registry.context(tool)

    @property
    def problems(self) -> tuple[str, ...]:
        """The tools of the host and of the session that were omitted, with the reasons."""
        self.newest()
        running = (self._running or {}).values()
        return (
            *self.registry.problems,
            *self._refused,
            *(each for one in running for each in one.problems),
            *self._problems,
        )

    def offer(self, offered: Tool | ToolSource) -> None:
        """Add a tool or a source of tools to those of the agent, from the next turn on.

        Raises:
            ToolRefused: if its name is invalid or taken, the agent's restrictions exclude it, or this is a child.
        """
        if self.parent is not None:
            raise ToolRefused("a child agent has only tools of its parent", hint="offer it to the parent")
        if isinstance(offered, Tool):
            tool = evolve(offered, source=_OWN)
            if (refusal := self._refusal(tool)) is not None:
                raise ToolRefused(f"the tool {tool.name!r} was not offered: {refusal[0]}", hint=refusal[1])
            self.own.tools[tool.name] = tool
        elif not is_tool_source(offered) or offered.scope != "session":
            kind = f"the class {offered.__name__}" if isinstance(offered, type) else f"a {type(offered).__name__}"
            hint = (
                "offer a Tool, which `@tool` makes of a function, or an object with `open`, "
                'a `name` of lower-case words joined by `_`, and `scope = "session"`'
            )
            raise ToolRefused(f"expected a tool or a source of tools for a session, got {kind}", hint=hint)
        else:
            self.add(ProvidedSource(offered, "", self.context(None)))
        self._changed()

    def add(self, provided: ProvidedSource) -> None:
        """Add a source of tools to those of the agent, from the next turn on.

        Raises:
            ToolRefused: if its name is taken.
        """
        if problem := self._start(provided):
            raise ToolRefused(problem, hint="choose another name")
        self.own.sources[provided.source.name] = provided
        self._changed()

    def withdraw(self, name: str) -> bool:
        """Remove a tool or a source that was offered, at once. Return whether there was one of this name.

        Calls in progress continue. Calls that have not begun are not run.
        """
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a tool or of a source of tools, got a {type(name).__name__}")
        if self.own.tools.pop(name, None) is not None:
            self._changed()
            return True
        if self.own.sources.pop(name, None) is None:
            return False
        running = (self._running or {}).get(name)
        if running is not None:
            running.stop()
            del (self._running or {})[name]
            self._changed()
        return True

    async def wait_for_sources(self) -> None:
        """Wait until each source of the host and of the session has listed its tools once, or failed to."""
        await self.registry.wait_for_sources()
        for one in tuple((self._running or {}).values()):
            await one.listed.wait()

    def start(self) -> None:
        """Open the sources of the session, without waiting for them. A source whose name is taken is not opened."""
        if self.parent is None:
            provided = [*self.registry.session_sources, *self.own.sources.values()]
            self._refused = tuple(problem for one in provided if (problem := self._start(one)))
            self._changed()  # tools may have been offered or withdrawn while sessions were switched

    async def close(self) -> None:
        """Close the sources of the session, the last one first, and wait for those that were withdrawn."""
        self._closed = True
        await close_sources(self._opened)

    def _start(self, provided: ProvidedSource) -> str | None:
        """Open a source of the session. Return why it was not opened."""
        name = provided.source.name
        running = self._running = {} if self._running is None else self._running
        if name in running or name in (one.partition(".")[0] for one in self.own.tools):
            return f"the source `{name}` was not opened: the session has another one with its name"
        if self._closed:
            return None  # the next session opens it
        context = self.context(provided.context) if provided.plugin else provided.context
        opened = self.registry.open_source(provided, context, _OWN, self._changed)
        if isinstance(opened, str):
            return opened
        running[name] = opened
        self._opened = [*(one for one in self._opened if not one.ended.is_set()), opened]
        self._plugins = {**(self._plugins or {}), opened.origin: provided.context if provided.plugin else None}
        return None

    def _refusal(self, tool: Tool) -> tuple[str, str] | None:
        """Return why a tool cannot be offered, and what to do."""
        fault = tool_fault(tool)
        if fault is not None:
            return fault, "correct the tool"
        if tool.name in self.own.tools:
            return "the session has a tool of this name", "withdraw that one first, or choose another name"
        first = self._together(self.registry.current.view).get(tool.name)
        if first is not None:
            return f"{first.source} has its name", "choose another name"
        if tool.name.partition(".")[0] in (self._running or {}):
            return "a source of the session has its name", "choose another name"
        if not self.wanted.resolve(ToolView((tool,))).tools:
            return "the tools of the agent are restricted", "add its name to `tools`, and `session` to `sources`"
        return None

    def _changed(self) -> None:
        self._seen = None

    def _together(self, view: ToolView) -> ToolView:
        """Return the tools of the host and of the session."""
        own, running = self.own.tools, self._running or {}
        if not own and not running:
            return view
        problems, found = [], list(own.values())
        for tool in view.tools:
            space = tool.name.partition(".")[0]
            # The source of a plugin may have its name.
            if tool.name in own or (space in running and not tool.source.startswith("plugin ")):
                problems.append(f"omitted the tool `{tool.name}` of {tool.source}: the session has one with its name")
            else:
                found.append(tool)
        for source in running.values():
            for tool in source.tools:
                if view.get(tool.name) is None:
                    found.append(tool)
                else:
                    problems.append(f"omitted the tool `{tool.name}` of {tool.source}: the host has one with its name")
        self._problems = tuple(problems)
        return ToolView.of(found)
