"""Run the sources of tools: each in its own task, listed again when it announces a change, and bounded in every way.

A source may be slow, dead or hostile. Nothing waits for it: its tools appear in the registry once they are checked.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from attrs import define, evolve, field

from ..contexts import PluginContext
from ..plugins._objects import describe, unwrapped
from ..tools import SCHEMA_LIMIT, OpenedSource, Tool, ToolSource, is_tool_name
from ..tools._tool import NAME_RULE

if TYPE_CHECKING:
    from ..broker._tape import EffectTape

MAX_TOOLS = 1_000
"""The maximum number of tools of one source."""
MAX_CHARACTERS = 2_000_000
"""The maximum length of all descriptions and parameters of one source as JSON, in characters."""
MAX_PROBLEMS = 20
"""The maximum number of problems that are kept of one listing, and how often one source may log some."""
OPEN_SECONDS = 60.0
LIST_SECONDS = 30.0
CLOSE_SECONDS = 5.0
CLOSE_ALL_SECONDS = 15.0
"""The timeout of closing all sources of a host, or of a session. The remaining ones are cancelled."""
PAUSE = 0.2
"""The minimum time between two listings of a source in seconds. Announcements in between are one."""
FIRST_RETRY_SECONDS = 1.0
"""The pause after a failed listing, doubled with each further one."""
_MAX_RETRY_SECONDS = 300.0
_LONGEST_SHOWN = 80
_LONGEST_PROBLEM = 1_000

_log = logging.getLogger("sideband")


@define(eq=False)
class RunningSource:
    """A source of tools in a task of its own, which opens, lists and closes it.

    Args:
        source: the source.
        name: its name, which is the namespace of its tools.
        origin: the ``source`` of its tools.
        context: the context that it is opened with.
        on_change: called when its tools or problems have changed.
        redact: removes secrets from problems.

    Attributes:
        state: whether it is being opened, is open, has failed or was closed.
        tools: its checked tools; empty unless it is open.
        problems: why it failed, and which tools were omitted.
        listed: set once it has listed its tools, or failed to.
        ended: set once it has failed or was closed.
    """

    source: ToolSource = field(repr=False)
    name: str
    origin: str
    context: PluginContext = field(repr=False)
    on_change: Callable[[], None] = field(repr=False)
    redact: Callable[[str], str] = field(repr=False)
    state: Literal["opening", "open", "failed", "closed"] = field(default="opening", init=False)
    tools: tuple[Tool, ...] = field(default=(), init=False, repr=False)
    problems: tuple[str, ...] = field(default=(), init=False, repr=False)
    listed: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    ended: anyio.Event = field(factory=anyio.Event, init=False, repr=False)
    _scope: anyio.CancelScope = field(factory=lambda: anyio.CancelScope(shield=True), init=False, repr=False)
    _serving: anyio.CancelScope | None = field(default=None, init=False, repr=False)
    _logged: int = field(default=0, init=False, repr=False)

    async def run(self) -> None:
        """Open the source, list its tools until it is closed, and close it."""
        problem = ""
        self._scope.deadline = anyio.current_time() + OPEN_SECONDS
        try:
            with self._scope:
                async with self.source.open(self.context) as opened:
                    if self.state == "opening":
                        self._scope.deadline = math.inf
                        self.state = "open"
                        await self._serve(opened)
        except BaseException as error:
            if isinstance(unwrapped(error), KeyboardInterrupt):
                raise
            # Nothing else cancels this task: a cancellation is the source's own, and must not reach the host.
            problem = f"it failed: {describe(error)}"
        finally:
            if self._scope.cancelled_caught and self.state == "opening":
                problem = f"it did not open within {OPEN_SECONDS:g} s"
            elif self._scope.cancelled_caught and self._serving is not None:
                problem = "it was cancelled, because it did not close in time"
            if self.state != "closed":
                self.state, problem = "failed", f"its tools are unavailable: {problem or 'it ended'}"
            self._settle((), [problem] if problem else [])
            self.ended.set()

    def stop(self, seconds: float = CLOSE_SECONDS) -> None:
        """Remove the tools at once, and begin to close the source, which is cancelled after that time."""
        if self.state in ("failed", "closed"):
            return
        self.state = "closed"
        self._scope.deadline = anyio.current_time() + seconds
        (self._serving or self._scope).cancel()
        self._settle((), [])

    async def _serve(self, opened: OpenedSource) -> None:
        with anyio.CancelScope() as self._serving:
            delay = 0.0
            while True:
                try:
                    self._settle(*await self._listed(opened))
                    await opened.changed()
                    delay = 0.0
                except BaseException as error:
                    if self._serving.cancel_called or isinstance(unwrapped(error), KeyboardInterrupt):
                        raise
                    self._settle(self.tools, [f"it could not be listed: {describe(error)}"])
                    delay = min(2 * delay or FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS)
                await anyio.sleep(max(delay, PAUSE))

    async def _listed(self, opened: OpenedSource) -> tuple[tuple[Tool, ...], list[str]]:
        """Return the tools of the source that can be used, and the problems of the others."""
        with anyio.move_on_after(LIST_SECONDS) as scope:
            listed = await opened.list()
        if scope.cancelled_caught:
            raise TimeoutError(f"`list` did not return within {LIST_SECONDS:g} s")
        if not isinstance(listed, list | tuple):
            raise TypeError(f"`list` must return a list, got a {type(listed).__name__}")
        found: dict[str, Tool] = {}
        problems: list[str] = []
        left = MAX_CHARACTERS
        for number, one in enumerate(listed):
            if number == MAX_TOOLS or left < 0:
                limit = f"{MAX_TOOLS:,} tools" if left >= 0 else f"{MAX_CHARACTERS:,} characters in total"
                problems.append(f"omitted {len(listed) - number:,} tools: a source may have {limit}")
                break
            await anyio.lowlevel.checkpoint()  # checking a large schema takes time that others need
            try:
                if (problem := self._misnamed(one, found)) is None:
                    left -= (size := _definition_size(one))
                    checked = evolve(one, source=self.origin)
                    # Making the schema of a large one would take long.
                    limit = f"its definition has more than {SCHEMA_LIMIT:,} characters"
                    problem = tool_fault(checked) if size <= SCHEMA_LIMIT else limit
            except Exception as error:  # noqa: BLE001  parameters of a class of its own may raise anything
                problem = f"it cannot be read: {describe(error)}"
            if problem is None:
                found[one.name] = checked
            else:
                problems.append(f"omitted the tool {_shown(one)}: {problem}")
        return tuple(found.values()), problems

    def _misnamed(self, one: Any, found: Mapping[str, Tool]) -> str | None:
        if not isinstance(one, Tool) or not isinstance(one.name, str):
            return f"expected a Tool, got a {type(one).__name__}"
        if one.name.partition(".")[0] != self.name:
            return f"it must be named `{self.name}` or `{self.name}.*`"
        return "another tool of the source has this name" if one.name in found else None

    def _settle(self, tools: tuple[Tool, ...], problems: Sequence[str]) -> None:
        """Set the tools and problems, and report them."""
        more = len(problems) - MAX_PROBLEMS
        kept = (*problems[:MAX_PROBLEMS], *([f"{more:,} more problems"] if more > 0 else ()))
        if kept:
            from ..rendering import render  # noqa: PLC0415  only needed for problems
        problems = tuple(f"{self.origin}: {render(self.redact(one))}"[:_LONGEST_PROBLEM] for one in kept)
        is_new = set(problems) - set(self.problems)
        self.tools, self.problems = tools, problems
        if is_new and self._logged < MAX_PROBLEMS:
            self._logged += 1
            for problem in problems:
                _log.warning("%s", problem)
        self.on_change()
        self.listed.set()


class ToolSources:
    """The sources of tools of a host. Use it with ``async with``: leaving it closes them, the last one first.

    Args:
        redact: removes secrets from problems.
        tape: the cassette of the host, if any.
    """

    def __init__(self, redact: Callable[[str], str], tape: EffectTape | None = None) -> None:
        self._redact = redact
        self._tape = tape
        self._tasks: TaskGroup | None = None
        self._running: list[RunningSource] = []

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        tasks, self._tasks = self._tasks, None
        await close_sources(self._running)
        if tasks is not None:
            await tasks.__aexit__(None, None, None)

    def start(
        self, source: ToolSource, name: str, origin: str, context: PluginContext, on_change: Callable[[], None]
    ) -> RunningSource:
        """Open a source in a task of the host, without waiting for it.

        Args:
            source, name, origin, context, on_change: see ``RunningSource``.

        Raises:
            RuntimeError: if the host is closed.
        """
        if self._tasks is None:
            raise RuntimeError("the host is closed")
        if self._tape is not None:
            source = self._tape.source(source)
        running = RunningSource(source, name, origin, context, on_change, self._redact)
        self._running = [*(one for one in self._running if not one.ended.is_set()), running]
        self._tasks.start_soon(running.run)
        return running


async def close_sources(running: Sequence[RunningSource]) -> None:
    """Close sources, the last one first. Those that do not end in time are cancelled."""
    with anyio.CancelScope(shield=True):
        end = anyio.current_time() + CLOSE_ALL_SECONDS
        for one in reversed(running):
            one.stop(max(0.0, min(CLOSE_SECONDS, end - anyio.current_time())))
            await one.ended.wait()


def tool_fault(one: Tool) -> str | None:
    """Return why a tool cannot be offered to models, or ``None``. One invalid tool would fail a whole request."""
    if not is_tool_name(one.name):
        return f"its name, set by {one.source}, is invalid: expected {NAME_RULE}"
    try:
        size, kind = one.schema_size, one.schema.parameters.get("type")
    except Exception:  # noqa: BLE001  parameters of a class of their own may raise anything
        size, kind = 0, None
    if kind != "object":
        return f"its schema, set by {one.source}, is not a valid JSON Schema of the type `object`"
    if size > SCHEMA_LIMIT:
        return f"its definition, set by {one.source}, has {size:,} characters, which exceeds {SCHEMA_LIMIT:,}"
    return None


def _definition_size(one: Tool) -> int:
    """Return the minimum length of a tool's definition as JSON, or the first number beyond the limit."""
    rest: list[Any] = [one.name, one.description, one.parameters]
    size = 0
    while rest:
        value = rest.pop()
        if isinstance(value, str):
            size += len(value) + 2
        elif isinstance(value, Mapping | list | tuple):
            size += len(value) + 1
        else:
            size += value.bit_length() // 4 + 1 if isinstance(value, int) else 1
        if size > SCHEMA_LIMIT:
            return SCHEMA_LIMIT + 1
        if isinstance(value, Mapping):
            rest += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            rest += value
    return size


def _shown(one: Any) -> str:
    """Return the name of a tool for a message. A source can give it any name."""
    is_named = isinstance(one, Tool) and isinstance(one.name, str)
    return repr(one.name[:_LONGEST_SHOWN]) if is_named else "without a name"
