"""All tools of a host: those of plugins and those of skills, which look the same to a model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from attrs import evolve

from ..broker import Ops, Progress
from ..calls import CallRequest, SkillCalls, SkillCatalog
from ..hooks import HookRegistry
from ..loading import SkillSpec, ToolSpec
from ..ops import Capability, Level, Origin
from ..plugins import PluginContext, PluginError, PluginHost
from ..tools import SCHEMA_LIMIT, Tool, ToolContext, ToolOutput, ToolView, is_tool_name

_log = logging.getLogger("sideband")
_NOT_FOR_MODELS = "disable-model-invocation"
"""The key of SKILL.md that others use too."""
_MOST_EFFECTS = 100
"""How many effects a result names. The record has all of them, under the step of the call."""


class HostToolContext(ToolContext, Protocol):
    """What the host's own tools need to know of a call besides what plugins may."""

    origin: Origin
    hooks: HookRegistry
    on_progress: Callable[[Progress], None]


class ToolRegistry:
    """Knows every tool of a host. There is one for each host; agents work on views of it.

    Args:
        plugins: those that may supply tools.
        catalog: the skills.
        calls: runs tools of skills.
        ops: tells how much a capability can do.
    """

    def __init__(self, plugins: PluginHost, catalog: SkillCatalog, calls: SkillCalls, ops: Ops) -> None:
        self._plugins = plugins
        self._catalog = catalog
        self._calls = calls
        self._ops = ops
        self.problems: tuple[str, ...] = ()
        self._contexts: dict[str, PluginContext] = {}

    def context(self, tool: Tool) -> PluginContext | None:
        """The context of the plugin that a tool comes from; ``None`` for a tool of a skill."""
        return self._contexts.get(tool.name)

    async def view(self) -> ToolView:
        """All tools, but for those that no model can be told of, and those that share a name: neither wins silently.

        What is left out is named in ``problems``.
        """
        found = [*await self._of_plugins(), *await self._of_skills()]
        by_name: dict[str, list[Tool]] = {}
        for one in found:
            by_name.setdefault(one.model_name, []).append(one)
        faults = {one.name: fault for one in found if (fault := _fault(one))}
        clashes = {name: rivals for name, rivals in by_name.items() if len(rivals) > 1}
        self.problems = (
            *(
                f"the tool `{name}` is left out: {' and '.join(one.source for one in rivals)} have it"
                for name, rivals in sorted(clashes.items())
            ),
            *(f"the tool `{name}` is left out: {fault}" for name, fault in sorted(faults.items())),
        )
        for problem in self.problems:
            _log.warning("%s", problem)
        alone = (rivals[0] for rivals in by_name.values() if len(rivals) == 1)
        return ToolView.of(one for one in alone if one.name not in faults)

    def forget_skills(self) -> None:
        """Look for skills anew when they are asked for next."""
        self._catalog.forget()

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """What models and prompts are told about skills."""
        return tuple(
            {
                "name": skill.name,
                "description": skill.description,
                "location": str(skill.source / "SKILL.md"),
                "tools": [one.model_name for one in skill.tools],
            }
            for skill in await self._skills()
        )

    async def _skills(self) -> list[SkillSpec]:
        """Those that models may use: a skill can say that it is for people only."""
        return [skill for skill in (await self._catalog.all()).skills if skill.metadata.get(_NOT_FOR_MODELS) != "true"]

    async def _of_plugins(self) -> list[Tool]:
        found: list[Tool] = []
        for name in self._plugins.names("tool"):
            try:
                plugin = await self._plugins.load("tool", name)
            except PluginError as error:
                _log.warning("%s", error.message)
                continue
            found += [evolve(one, source=f"plugin {name}") for one in plugin.contribution]
            self._contexts.update(dict.fromkeys((one.name for one in plugin.contribution), plugin.context))
        return found

    async def _of_skills(self) -> list[Tool]:
        found: list[Tool] = []
        for skill in await self._skills():
            level = await self._level(skill)
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
            source=f"skill {skill.name}",
        )

    async def _level(self, skill: SkillSpec) -> Level:
        """The highest level that what the skill asks for reaches."""
        highest = Level.SAFE
        for text in skill.capabilities:
            try:
                family = (await self._ops.plugin(Capability.parse(text).family)).contribution
            except (PluginError, ValueError):
                continue  # a call says what is wrong with it
            highest = max([highest, *(spec.level for spec in family.ops if spec.requires)])
        return highest

    async def _run(self, name: str, arguments: dict[str, Any], ctx: HostToolContext) -> ToolOutput:
        result = await self._calls.run(
            CallRequest(
                name,
                arguments,
                key=ctx.key,
                principal=ctx.principal,
                on_progress=ctx.on_progress,
                origin=ctx.origin,
                hooks=ctx.hooks,
            )
        )
        effects = [effect.id for effect in result.effects[:_MOST_EFFECTS]]
        return ToolOutput(result.output, metadata={"effects": effects, "isolation": result.isolation})


def _fault(one: Tool) -> str | None:
    """Why no model can be told of a tool. One whole request fails for one tool of which a server can't read."""
    if not is_tool_name(one.name):
        return f"{one.source} gives it a name that models do not take"
    try:
        size = len(one.schema.model_dump_json())
    except (ValueError, TypeError, RecursionError):
        return f"{one.source} describes it with what is no JSON Schema"
    if size > SCHEMA_LIMIT:
        return f"{one.source} describes it in {size:,} characters, and {SCHEMA_LIMIT:,} are allowed"
    return None
