"""The conformance classes of tools and of sources of tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import attrs
import pytest
from sideband import Host, Plugin
from sideband.hooks import ToolExecutionEnd
from sideband.tools import SCHEMA_LIMIT, OpenedSource, Tool, ToolSource, is_tool_name
from sideband_scripted import Turn

from ._agents import AgentConformance
from ._base import CANARY, listed
from ._examples import Example
from ._failing import fail
from ._leftovers import held, left_since
from ._schemas import check_instance, check_schema
from ._stepping import Steps
from ._subject import registering, wrapped
from ._values import WRONG

_CORRECT = "correct the example, or the tool"


class _ToolsConformance(AgentConformance):
    """What tools have in common, wherever they come from.

    Attributes:
        examples: uses of its tools; ``None`` to check only what needs no example.
    """

    kind = "tool"
    examples: ClassVar[Sequence[Example] | None] = None

    def test_schemas_are_valid(self) -> None:
        """Check that each tool has a valid name, a description and a JSON Schema, within the limits of requests."""

        async def check() -> None:
            async with self.open_host() as host:
                for tool in await self.tools_of(host):
                    check_schema(self.label, f"`parameters` of the tool `{tool.name}`", tool.parameters)
                    problem = _problem(tool)
                    if problem:
                        self._wrong(
                            f"the tool `{tool.name}` can be sent to a model", problem, "correct its declaration"
                        )
                for problem in host.tools.problems:
                    self._wrong("a host offers all its tools", problem, "correct the tool that the message names")

        self.run(check)

    def test_wrong_arguments_are_refused(self) -> None:
        """Check that wrong arguments raise ``ValueError`` before the tool runs, whatever a model sends."""

        async def check() -> None:
            async with self.open_host() as host:
                for tool in await self.tools_of(host):
                    valid = next((dict(one.params) for one in self.examples or () if one.name == tool.name), {})
                    for arguments in _wrong_arguments(tool, valid):
                        try:
                            tool.validate(arguments)
                        except ValueError:
                            continue
                        except Exception as error:  # noqa: BLE001  that is what is checked
                            self._wrong(
                                f"`{tool.name}` refuses wrong arguments with `ValueError`: {str(arguments)[:200]}",
                                f"{type(error).__name__}: {error}",
                                "validate with a pydantic model, as `@tool` does",
                            )
                    self._check_unknown(tool, valid)

        self.run(check)

    def test_examples_run(self) -> None:
        """Check that each example has the result or the error that it must have, when a model calls it."""

        async def check() -> None:
            async with self.open_host() as host:
                tools = {tool.name: tool for tool in await self.tools_of(host)}
                for example in self._given():
                    self.reset_world()
                    arguments = self.fill(dict(example.params))
                    if example.name in tools and not example.error:
                        schema = tools[example.name].parameters
                        check_instance(self.label, f"the arguments of `{example.name}`", arguments, schema)
                    ended = await self._call(host, example, arguments)
                    if ended.is_error != bool(example.error):
                        self._wrong(
                            f"the example of `{example.name}` {'fails' if example.error else 'succeeds'}",
                            _text(ended.content),
                            _CORRECT,
                        )
                    shown = _text(ended.content)
                    if example.error not in shown:
                        self._wrong(f"the example of `{example.name}` fails with `{example.error}`", shown, _CORRECT)
                    if example.result is not Ellipsis and _text(self.fill(example.result)) != shown:
                        self._wrong(f"the result of `{example.name}` is {example.result!r}", shown, _CORRECT)

        for backend in self.backends:
            self.run(check, backend=backend)

    def test_secrets_stay_hidden(self, caplog: pytest.LogCaptureFixture) -> None:
        """Check that what a model passes as an argument appears in no log."""
        caplog.set_level(0)

        async def check() -> None:
            async with self.open_host() as host:
                for example in self._given():
                    self.reset_world()
                    arguments = self.fill(dict(example.params))
                    texts = [name for name, value in arguments.items() if isinstance(value, str)]
                    for name in texts:
                        # A text that must be one of a few is now refused, which must not log it either.
                        await self._turn(host, example, {**arguments, name: f"{arguments[name]}{CANARY}"})

        self.run(check)
        if CANARY in caplog.text:
            self._wrong("it does not log its arguments", "a log contains one", "log names and numbers, not content")

    @asynccontextmanager
    async def open_host(self, *, plugin: Plugin | None = None, home: Path | None = None) -> AsyncIterator[Host]:
        """Open a host as for other kinds, when the folder of the examples is complete: a source lists it at once."""
        self.reset_world()
        async with super().open_host(plugin=plugin, home=home) as host:
            yield host

    async def tools_of(self, host: Host) -> Sequence[Tool]:
        """Return the tools of the plugin."""
        await host.tools.wait_for_sources()
        view = await host.tools.view()
        return [one for one in view.tools if self._is_own(one)]

    def _is_own(self, tool: Tool) -> bool:
        return tool.source == f"plugin {self.subject.name}"

    async def exercise(self, host: Host) -> None:
        """Call all examples."""
        for example in self.examples or ():
            self.reset_world()
            await self._call(host, example, self.fill(dict(example.params)))

    async def _call(self, host: Host, example: Example, arguments: Mapping[str, Any]) -> ToolExecutionEnd:
        """Let a model call a tool, and return the end of the call."""
        ends, error = await self._turn(host, example, arguments)
        if not ends:
            happened = error or f"its tools are {listed(one.name for one in await self.tools_of(host))}"
            self._wrong(f"a model can call `{example.name}`", happened, _CORRECT)
        return ends[-1]

    async def _turn(
        self, host: Host, example: Example, arguments: Mapping[str, Any]
    ) -> tuple[list[ToolExecutionEnd], str]:
        """Let a model call a tool, and return the end of the call, if it began, and the error of the run."""
        await host.tools.wait_for_sources()
        ends: list[ToolExecutionEnd] = []

        def note(event: Any) -> None:
            if isinstance(event, ToolExecutionEnd):
                ends.append(event)

        self.turns_of_model[:] = [Turn(tool_calls=[(example.name.replace(".", "__"), dict(arguments))])]
        async with self.open_agent(host, on_event=note) as agent:
            await agent.wait_for_sources()  # a turn has the tools that are known when it begins
            result = await agent.invoke("go on")
        return ends, str(result.error or "")

    def _given(self) -> Sequence[Example]:
        if self.examples is None:
            pytest.skip("no examples: set `examples` in a test class of your own, to check what the tools do")
        return self.examples

    def _check_unknown(self, tool: Tool, valid: Mapping[str, Any]) -> None:
        if not valid and tool.parameters.get("required"):
            return
        try:
            tool.validate({**valid, "sideband_unknown": 1})
        except ValueError:
            return
        if tool.parameters.get("additionalProperties") is False:
            self._wrong(
                f"`{tool.name}` refuses unknown arguments, as its schema says",
                "it ignores them",
                "validate what the schema says",
            )

    def _wrong(self, expected: str, happened: str, remedy: str) -> Any:
        fail(self.label, expected=expected, happened=happened, remedy=remedy)


class ToolConformance(_ToolsConformance):
    """The tests of a tool plugin: a plugin in the group ``sideband.v1.tool``.

    Attributes:
        examples: uses of its tools; ``None`` to check only what needs no example.

    Example:
        >>> class TestEcho(ToolConformance):
        ...     plugin = "tool.echo"
        ...     examples = [Example("echo", {"text": "hello"}, result="hello")]
    """

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that a tool that is cancelled wherever it waits leaves no task, thread, process or file."""

        async def check() -> None:
            for example in self._given():
                steps = Steps()
                async with self.open_host(plugin=self._watched(example.name, steps)) as host:
                    await self.cancel_everywhere(
                        f"`{example.name}`",
                        steps,
                        lambda: self._call(host, example, self.fill(dict(example.params))),  # noqa: B023
                        arrange=self._reset,
                    )

        self.run(check)

    async def _reset(self) -> None:
        self.reset_world()

    def _watched(self, name: str, steps: Steps) -> Plugin:
        def change(found: Any) -> Any:
            if isinstance(found, Tool):
                return attrs.evolve(found, run=steps.watch(found.run)) if found.name == name else found
            return [change(one) for one in found] if isinstance(found, list | tuple) else found

        value = self.subject.value
        if isinstance(value, Tool):
            return attrs.evolve(self.subject, value=change(value))
        return wrapped(self.subject, {"sideband_tools": registering(value.sideband_tools, change)})


class ToolSourceConformance(_ToolsConformance):
    """The tests of a source of tools, which a plugin in the group ``sideband.v1.tool`` returns.

    Attributes:
        examples: uses of the tools that it lists first; ``None`` to check only what needs no example.
        source: the name of the source.

    Example:
        >>> class TestTickets(ToolSourceConformance):
        ...     plugin = "tool.tickets"
        ...     source = "tickets"
    """

    source: ClassVar[str] = ""

    def test_names_are_in_its_namespace(self) -> None:
        """Check that each tool has the name of the source, alone or before a dot."""

        async def check() -> None:
            async with self._opened() as (source, opened):
                for tool in await opened.list():
                    if tool.name != source.name and not tool.name.startswith(f"{source.name}."):
                        self._wrong(
                            f"its tools are named `{source.name}` or `{source.name}.NAME`",
                            f"one is named `{tool.name}`",
                            "put the name of the source and a dot before it",
                        )

        self.run(check)

    def test_listing_again_has_the_same_tools(self) -> None:
        """Check that while nothing changes, it lists the same tools."""

        async def check() -> None:
            async with self._opened() as (_, opened):
                first, second = [[tool.name for tool in await opened.list()] for _ in range(2)]
                if first != second:
                    self._wrong(
                        "two listings without a change have the same tools in the same order",
                        f"{first} became {second}",
                        "sort them, and list only what exists",
                    )

        self.run(check)

    def test_closing_leaves_nothing_behind(self) -> None:
        """Check that a source that is closed while it waits for changes leaves no task, thread or process."""

        async def check() -> None:
            for _ in range(2):
                async with self._opened() as (_, opened):
                    await opened.list()
            before = held()
            async with self._opened() as (_, opened):
                await opened.list()
                with anyio.move_on_after(0.01):
                    await opened.changed()
            if left := await left_since(before):
                self._wrong(
                    "a closed source leaves nothing",
                    f"it leaves {', '.join(left)}",
                    "release it at the end of `open`, in `finally`",
                )

        for backend in self.backends:
            self.run(check, backend=backend)

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that a source that is cancelled wherever it waits while it opens and lists leaves nothing."""

        async def check() -> None:
            steps = Steps()
            async with self.open_host() as host:
                loaded = await host.plugins.load("tool", self.subject.name)
                source = self._find(loaded.contribution)

                async def use() -> None:
                    async with source.open(loaded.context) as opened:
                        await opened.list()

                await self.cancel_everywhere(f"the source `{source.name}`", steps, steps.watch(use))

        self.run(check)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[ToolSource, OpenedSource]]:
        async with self.open_host() as host:
            loaded = await host.plugins.load("tool", self.subject.name)
            source = self._find(loaded.contribution)
            async with source.open(loaded.context) as opened:
                yield source, opened

    def _find(self, contribution: Sequence[Any]) -> ToolSource:
        found = [one for one in contribution if not isinstance(one, Tool) and self.source in ("", one.name)]
        if not found:
            self._wrong("it returns a source of tools", "it returns none", "set `source`, or use `ToolConformance`")
        source: ToolSource = found[0]
        return source

    def _is_own(self, tool: Tool) -> bool:
        return tool.source.startswith("source ")


def _problem(tool: Tool) -> str:
    """Return why a tool cannot be sent to a model."""
    if not is_tool_name(tool.name):
        return f"`{tool.name}` is not a valid name"
    if not tool.description.strip():
        return "it has no description, from which a model knows when to use it"
    if tool.parameters.get("type") != "object":
        return "the type of its parameters is not `object`"
    if tool.schema_size > SCHEMA_LIMIT:
        return f"its schema has {tool.schema_size:,} of at most {SCHEMA_LIMIT:,} characters"
    return ""


def _wrong_arguments(tool: Tool, valid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in tool.parameters.get("properties", {}):
        yield {key: value for key, value in valid.items() if key != name}
        for value in WRONG:
            yield {**valid, name: value}


def _text(content: Any) -> str:
    """Return a result as a model sees it."""
    if isinstance(content, list | tuple):
        return "".join(str(one.get("text", "")) if isinstance(one, Mapping) else str(one) for one in content)
    return content if isinstance(content, str) else json.dumps(content)
