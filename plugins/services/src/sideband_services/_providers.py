"""The skills that provide a service, in the order of their rank, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sideband.contexts import SkillTool

from ._errors import ServiceProviderUnknown, ServiceRefused

# A skill that the user has chosen precedes one that came with something else, and the project's is the last: it must
# not receive what callers send to the user's skill.
_ORIGINS = ("folder", "package", "plugin", "loader", "project")


def providers_of(name: str, tools: Iterable[SkillTool]) -> list[SkillTool]:
    """Return the tools that provide a service, by the origin of their skills, then by name."""
    return sorted((one for one in tools if name in one.services), key=_rank)


def services_of(tools: Iterable[SkillTool]) -> list[str]:
    """Return the names of all services, sorted."""
    return sorted({service for one in tools for service in one.services})


def choose(name: str, ranked: Sequence[SkillTool], wanted: str | None, configured: Mapping[str, str]) -> SkillTool:
    """Return the provider to call: that of the configuration, else the wanted one, else the first.

    Args:
        name: the service.
        ranked: its providers, at least one.
        wanted: the skill that the caller asks for.
        configured: the skill for each service.

    Raises:
        ServiceRefused: if the caller asks for another one than the configuration.
        ServiceProviderUnknown: if the skill does not provide the service.
    """
    chosen = configured.get(name)
    if chosen is not None and wanted is not None and not _is_named(wanted, chosen):
        raise ServiceRefused(name, wanted, chosen)
    asked = wanted if chosen is None else chosen
    if asked is None:
        return ranked[0]
    found = next((one for one in ranked if _is_named(asked, one.skill)), None)
    if found is None:
        raise ServiceProviderUnknown(name, asked, [one.skill for one in ranked], configured=chosen is not None)
    return found


def _is_named(name: str, skill: str) -> bool:
    """Return whether a skill has this name, as SKILL.md or as tools write it."""
    return name == skill or name.replace("-", "_") == skill.replace("-", "_")


def _rank(tool: SkillTool) -> tuple[int, str]:
    origin = tool.origin.partition(" ")[0]
    return _ORIGINS.index(origin) if origin in _ORIGINS else len(_ORIGINS), tool.name
