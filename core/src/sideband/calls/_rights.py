"""Determine the rights of a call and the source of each: the caller, the policy, or the user, now or earlier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from ..broker import Ops
from ..errors import ConfigurationError
from ..loading import SkillError, SkillSpec
from ..ops import Capability, CapabilityInvalid, Grant
from ..settings import COMMAND_LINE, LoadedSettings
from ..workers import GrantRequired
from ._grants import RememberedGrants

GrantAsker = Callable[[SkillSpec, Grant], Awaitable[bool]]
"""Asks the user whether to grant these capabilities to a skill, and returns the answer."""

_CACHED_RIGHTS = 1_024


class Rights:
    """The rights of skills on one host.

    Args:
        home: the host's state folder, which stores grants.
        settings: the settings, with the configured grants.
        ops: the op families, to validate capabilities.
        asker: asks the user; ``None`` if the user cannot be asked.
    """

    def __init__(self, home: Path, settings: LoadedSettings, ops: Ops, asker: GrantAsker | None) -> None:
        self._settings = settings
        self._ops = ops
        self._asker = asker
        self._remembered = RememberedGrants(home)
        self._for_projects = (COMMAND_LINE, str(settings.project_file))

    async def of(self, skill: SkillSpec, digest: str, given: tuple[str, ...] | None) -> tuple[Grant, Mapping[str, str]]:
        """Return the rights of a call and the source of each capability.

        Args:
            skill: the skill whose tool is called.
            digest: the digest of the skill's current content, under which grants are stored.
            given: the rights that the caller gives; ``None`` for those that the skill requests.

        Raises:
            CapabilityInvalid: if ``given`` contains an invalid or unknown capability.
            GrantRequired: if the skill requests more than it was granted, and no person grants it now.
            SkillError: if the skill requests an unknown capability.
        """
        if given is not None:
            grant = await self._ops.grant(given)
            return grant, dict.fromkeys(grant.texts(), "call")
        wanted = await self._wanted(skill)
        policy = await self._by_policy(skill)
        remembered = await self._ops.grant(self._remembered.get(digest).texts())
        missing = _missing(wanted, policy, remembered)
        if missing:
            if self._asker is None or not await self._asker(skill, missing):
                raise GrantRequired(skill.name, missing.texts())
            self._remembered.remember(digest, skill.name, wanted)
        return wanted, _sources(wanted, policy, missing)

    async def _wanted(self, skill: SkillSpec) -> Grant:
        try:
            return await self._ops.grant(skill.capabilities)
        except CapabilityInvalid as error:
            problem = f"the skill `{skill.name}` requests an unknown capability: {error.message}"
            raise SkillError(problem, hint=f"correct `sideband.capabilities` in {skill.source / 'SKILL.md'}") from error

    async def _by_policy(self, skill: SkillSpec) -> Grant:
        grants = self._settings.settings.grants
        name = skill.key if skill.key in grants else skill.name
        if skill.of_project and self._settings.sources.get(("grants", name)) not in self._for_projects:
            # The project chose the name, so the user may have meant another skill.
            return Grant()
        try:
            return await self._ops.grant(grants.get(name, ()))
        except CapabilityInvalid as error:
            source = self._settings.sources.get(("grants", name), "")
            raise ConfigurationError(f"grants.{name}", error.message, source=source, hint=error.hint) from error


# Cached, because most calls of a skill have the same rights.


@lru_cache(maxsize=_CACHED_RIGHTS)
def _missing(wanted: Grant, policy: Grant, remembered: Grant) -> Grant:
    return Grant.of([*policy.capabilities, *remembered.capabilities]).missing(wanted)


@lru_cache(maxsize=_CACHED_RIGHTS)
def _sources(wanted: Grant, policy: Grant, granted_now: Grant) -> Mapping[str, str]:
    return MappingProxyType({str(one): _source(one, policy, granted_now) for one in wanted.capabilities})


def _source(capability: Capability, policy: Grant, granted_now: Grant) -> str:
    if policy.covers(Grant((capability,))):
        return "policy"
    return "person" if capability in granted_now.capabilities else "remembered"
