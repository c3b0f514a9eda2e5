"""The registry of all tools of a host, from plugins, skills and sources of tools."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from attrs import evolve, field, frozen

from ..broker import Attempt, CallProgress, Ops
from ..calls import CallRequest, SkillCalls, SkillCatalog
from ..hooks import HookRegistry
from ..hooks._frozen import freeze
from ..loading import LoadedSkills, SkillSpec, ToolSpec
from ..ops import Capability, Grant, Level, Origin
from ..plugins import PluginContext, PluginError, PluginHost, State
from ..tools import Tool, ToolContext, ToolOutput, ToolSource, ToolView
from ._tool_names import foreign_names, provider
from ._tool_sources import RunningSource, ToolSources, tool_fault

_log = logging.getLogger("sideband")
_NOT_FOR_MODELS = "disable-model-invocation"
"""The metadata key of SKILL.md, which other programs use too. Loaders write its value as ``true`` or ``false``."""
_BROKEN = tuple(state for state in State if state.broken)
_MAX_EFFECTS = 100
"""The maximum number of effect ids in a result. The ledger has all effects, under the step of the call."""


class HostToolContext(ToolContext, Protocol):
    """The context of a call with the additional attributes that tools of skills need."""

    origin: Origin
    hooks: HookRegistry
    call_progress: CallProgress | None
    on_answer: Callable[[str, str, Any], Awaitable[None]]
    attempt: Attempt | None


@frozen
class HostTools:
    """All tools of a host at one time. It never changes: a change of the tools makes another one.

    Attributes:
        version: the number of the snapshot, which grows with each change.
        view: the tools, each with its ``source``.
        problems: the tools that were omitted, with the reasons.
    """

    version: int = 0
    view: ToolView = field(factory=ToolView, repr=False)
    problems: tuple[str, ...] = ()


@frozen
class ProvidedSource:
    """A source of tools and the plugin that provides it.

    Attributes:
        source: the source.
        plugin: the name of the plugin.
        context: its context.
    """

    source: ToolSource
    plugin: str
    context: PluginContext = field(repr=False)


class ToolRegistry:
    """The registry of all tools of a host. Agents use views of it.

    Args:
        plugins: the plugin host, for the tools of plugins.
        catalog: the skill catalog, for the tools of skills.
        calls: runs the tools of skills.
        ops: determines the levels of capabilities.
        added: capabilities by skill that its calls get in addition to those that it requests.
        tasks: runs sources of tools.

    Attributes:
        current: the newest snapshot, empty before the first call of ``view``.
        sources: the sources of the host that were opened, in the order in which they were opened.
    """

    def __init__(
        self,
        plugins: PluginHost,
        catalog: SkillCatalog,
        calls: SkillCalls,
        ops: Ops,
        added: Mapping[str, Iterable[str]],
        *,
        tasks: ToolSources,
    ) -> None:
        self._plugins = plugins
        self._catalog = catalog
        self._calls = calls
        self._ops = ops
        self._added = {skill: tuple(capabilities) for skill, capabilities in added.items()}
        self._tasks = tasks
        self.current = HostTools()
        self.sources: tuple[RunningSource, ...] = ()
        self._provided: dict[int, ProvidedSource] = {}
        self._opened: dict[int, RunningSource | str] = {}
        self._namespaces: dict[str, str] = {}
        self._base: tuple[ToolView, tuple[str, ...]] = (ToolView(), ())
        self._contexts: dict[str, PluginContext] = {}
        self._viewed: tuple[LoadedSkills, list[Any]] | None = None
        self._described: tuple[LoadedSkills, tuple[Mapping[str, Any], ...]] | None = None

    def context(self, tool: Tool) -> PluginContext | None:
        """Return the context of the plugin that provides a tool or its source, or ``None`` for a tool of a skill."""
        return tool.run.context if isinstance(tool.run, _PluginRun) else self._contexts.get(tool.source)

    @property
    def problems(self) -> tuple[str, ...]:
        """The tools that were omitted, with the reasons."""
        return self.current.problems

    async def code(self, tool: Tool, plugin: str) -> str:
        """Return the version of the code of a skill's tool; for another tool, a digest of its declaration and package.

        Args:
            tool: the tool.
            plugin: the plugin that provides it.
        """
        if tool.source.startswith("skill "):
            return await self._calls.code(tool.name)
        holders = [one.holder for one in self._plugins.records if one.kind == "tool" and one.name == plugin]
        declared = f"{holders} {tool.source} {tool.level.name} {tool.read_only} {tool.schema.model_dump_json()}"
        return hashlib.sha256(declared.encode()).hexdigest()

    async def view(self) -> ToolView:
        """Return all tools except those with an invalid name or schema, and those with the same name as another.

        Omitted tools are listed in ``problems``. Agents share the view until skills are loaded again, the state of a
        plugin changes, or a source has other tools. Tools of sources that have not been listed yet are missing.
        """
        loaded = await self._catalog.all()
        if self._viewed is None or self._viewed[0] is not loaded or self._viewed[1] != self._states():
            await self._of_plugins([])  # loads them, which changes their states
            viewed = (loaded, self._states())
            self._base, self._viewed = await self._view(), viewed
            for problem in self._base[1]:
                _log.warning("%s", problem)
            self._open_sources()
            self._publish()
        return self.current.view

    async def wait_for_sources(self) -> None:
        """Open the sources of the host, and wait until each has listed its tools once, or failed to.

        No agent does that.
        """
        await self.view()
        for one in self.sources:
            await one.listed.wait()

    @property
    def session_sources(self) -> list[ProvidedSource]:
        """The sources of plugins that are opened for each session."""
        return [one for one in self._provided.values() if one.source.scope == "session"]

    def owner(self, namespace: str, plugin: str = "") -> str | None:
        """Return what already has a namespace of tools, or ``None`` if a source may have it.

        Args:
            namespace: the first part of names of tools.
            plugin: the plugin that provides the source, which may have the name of its plugin.
        """
        if namespace != plugin and namespace in self._plugins.names("tool", broken=True):
            return f"plugin {namespace}"
        own = f"plugin {plugin}"
        having = (one.source for one in self._base[0].tools if one.name.partition(".")[0] == namespace)
        return self._namespaces.get(namespace) or next((one for one in having if one != own), None)

    def open_source(
        self, provided: ProvidedSource, context: PluginContext, kind: str, on_change: Callable[[], None]
    ) -> RunningSource | str:
        """Open a source in a task of the host, without waiting for it. Return why if its name is taken.

        Args:
            provided: the source.
            context: the context that it is opened with.
            kind: how the ``source`` of its tools begins.
            on_change: called when its tools or problems have changed.
        """
        name = provided.source.name
        if (owner := self.owner(name, provided.plugin)) is not None:
            return f"the source `{name}` was not opened: {owner} has its name"
        return self._tasks.start(provided.source, name, f"{kind} {name}", context, on_change)

    def _open_sources(self) -> None:
        """Open the sources of plugins, each once, and stop those of failed plugins."""
        for key, one in self._provided.items():
            if key in self._opened or one.source.scope != "host":
                continue
            opened = self._opened[key] = self.open_source(one, one.context, "source", self._publish)
            if isinstance(opened, str):
                _log.warning("%s", opened)
                continue
            self.sources = (*self.sources, opened)
            self._namespaces[opened.name] = opened.origin
            self._contexts[opened.origin] = one.context
        for key, running in self._opened.items():
            if key not in self._provided and isinstance(running, RunningSource):
                running.stop()

    def _publish(self) -> None:
        """Make a snapshot of the tools that exist now."""
        view, unusable = self._base
        problems = [*unusable, *(one for one in self._opened.values() if isinstance(one, str))]
        tools: list[Tool] = []
        for source in self.sources:
            problems += source.problems
            for one in source.tools:
                if (first := view.get(one.name)) is None:
                    tools.append(one)
                else:
                    problems.append(f"omitted the tool `{one.name}` of {source.origin}: {first.source} has its name")
        view = ToolView.of([*view.tools, *tools]) if tools else view
        self.current = HostTools(self.current.version + 1, view, tuple(problems))

    def _states(self) -> list[Any]:
        """Return the states on which the view depends. `level` loads the op families that it needs."""
        records = self._plugins.records
        return [one.trail for one in records if one.kind == "tool" or one.trail[-1].state in _BROKEN]

    async def _view(self) -> tuple[ToolView, tuple[str, ...]]:
        unusable: list[str] = []
        found = [*await self._of_plugins(unusable), *await self._of_skills()]
        records = [one for one in self._plugins.records if one.kind == "tool" and one.state is not State.DENIED]
        foreign = foreign_names(found, records)
        found = [one for one in found if (one.source, one.name) not in foreign]
        by_name: dict[str, list[Tool]] = {}
        for one in found:
            by_name.setdefault(one.model_name, []).append(one)
        faults = {one.name: fault for one in found if (fault := tool_fault(one) or self._reserved(one))}
        clashes = {name: rivals for name, rivals in by_name.items() if len(rivals) > 1}
        problems = (
            *unusable,
            *(
                f"omitted the tool `{name}`: {' and '.join(provider(one.source, records) for one in rivals)} provide it"
                for name, rivals in sorted(clashes.items())
            ),
            *(f"omitted the tool `{name}` of {source}: {why}" for (source, name), why in sorted(foreign.items())),
            *(f"omitted the tool `{name}`: {fault}" for name, fault in sorted(faults.items())),
        )
        alone = (rivals[0] for rivals in by_name.values() if len(rivals) == 1)
        return ToolView.of(one for one in alone if one.name not in faults), problems

    def _reserved(self, one: Tool) -> str | None:
        """Return why a tool cannot have its name, which a source had first. A plugin may share it with its source."""
        owner = self._namespaces.get(one.name.partition(".")[0])
        return f"{owner} has its name" if owner and not one.source.startswith("plugin ") else None

    def forget_skills(self) -> None:
        """Search for skills again on the next access."""
        self._catalog.forget()

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """Return the descriptions of skills for models and prompts. They are immutable, because agents share them."""
        loaded = await self._catalog.all()
        if self._described is None or self._described[0] is not loaded:
            self._described = (loaded, tuple(map(_description, _for_models(loaded))))
        return self._described[1]

    async def level(self, skill: SkillSpec) -> Level:
        """Return the highest level of the effects that calls of the skill may cause."""
        usable: list[Capability] = []
        for text in (*skill.capabilities, *(self._added.get(skill.key) or self._added.get(skill.name, ()))):
            with suppress(PluginError, ValueError):  # reported when the tool is called
                usable += (await self._ops.grant((text,))).capabilities
        return await self._ops.reach(Grant.of(usable))

    async def _of_plugins(self, unusable: list[str]) -> list[Tool]:
        found: list[Tool] = []
        provided: dict[int, ProvidedSource] = {}
        for name in self._plugins.names("tool", broken=True):
            try:
                plugin = await self._plugins.load("tool", name)
            except PluginError as error:
                unusable.append(f"omitted the tools of the plugin `{name}`: {error.message}; {error.hint}")
                continue
            source = f"plugin {name}"
            for one in plugin.contribution:
                if isinstance(one, Tool):
                    run = _PluginRun(one.run)
                    run.context = plugin.context
                    found.append(evolve(one, source=source, run=run))
                else:
                    provided[id(one)] = ProvidedSource(one, name, plugin.context)
        self._plugins.check_strict()
        self._provided = provided
        return found

    async def _of_skills(self) -> list[Tool]:
        found: list[Tool] = []
        for skill in _for_models(await self._catalog.all()):
            level = await self.level(skill)
            found += [self._tool(skill, one, level) for one in skill.tools]
        return found

    def _tool(self, skill: SkillSpec, spec: ToolSpec, level: Level) -> Tool:
        return Tool(
            name=spec.full_name,
            description=spec.description,
            parameters=spec.parameters,
            validate=spec.validate,
            run=partial(self._run, spec.full_name),
            level=level,
            timeout=spec.timeout or skill.timeout,
            resume=skill.resume,
            source=f"skill {skill.name}",
            from_host=spec.from_host,
        )

    async def _run(self, name: str, arguments: dict[str, Any], ctx: HostToolContext) -> ToolOutput:
        result = await self._calls.run(
            CallRequest(
                name,
                arguments,
                key=ctx.key,
                principal=ctx.principal,
                progress=ctx.call_progress,
                on_answer=ctx.on_answer,
                origin=ctx.origin,
                hooks=ctx.hooks,
                attempt=ctx.attempt,
            )
        )
        effects = [effect.id for effect in result.effects[:_MAX_EFFECTS]]
        return ToolOutput(result.output, metadata={"effects": effects, "isolation": result.isolation})


class _PluginRun(partial[Awaitable[Any]]):
    """The function of a plugin's tool, with the context of that plugin, which a reload does not change.

    It is a ``partial``, whose call is not one of Python.
    """

    context: PluginContext


def _for_models(loaded: LoadedSkills) -> list[SkillSpec]:
    """Return the skills that models may use; a skill can declare that it is for people only."""
    return [skill for skill in loaded.skills if skill.metadata.get(_NOT_FOR_MODELS) != "true"]


def _description(skill: SkillSpec) -> Mapping[str, Any]:
    described: Mapping[str, Any] = freeze(
        {
            "name": skill.name,
            "description": skill.description,
            "location": str(skill.source / "SKILL.md"),
            "origin": skill.origin,
            "allowed_tools": list(skill.allowed_tools),
            "tools": [one.model_name for one in skill.tools],
        }
    )
    return described
